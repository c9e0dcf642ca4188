import type { RuntimeContext } from '../../src/core/base/runtime.ts'
import { addressReader } from '../../src/core/request/client-address.ts'
import { RequestView } from '../../src/core/request/view.ts'

const readAddress = addressReader('cloudflare')

/** The view of a request as a Worker on Cloudflare makes it. */
export const viewOnCloudflare = (
  request: Request,
  runtime: RuntimeContext,
  config: { caseSensitivePaths: boolean },
) => new RequestView(request, runtime, config, readAddress)
