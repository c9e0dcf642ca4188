/** Explains one request of the traffic, as `sluice explain` does. */
import { explain } from '../../../cli/explain/explain.ts'
import { toText } from '../../../cli/explain/print.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import type { Arrival } from './traffic.ts'

export async function explained(options: ConfigOptions, arrival: Arrival): Promise<string> {
  const { method, url, ip, headers, country, asn, colo } = arrival
  const explanation = await explain(parseConfig(options, defaultFields), {
    method,
    url,
    path: new URL(url).pathname,
    headers: new Headers({ ...headers, 'cf-connecting-ip': ip }),
    cf: { ...(country && { country }), ...(asn && { asn }), ...(colo && { colo }) },
  })
  return toText(explanation)
}
