import { contains } from '../../core/base/contains.ts'
import { type Lack, needBody, needResponse } from '../../core/config/host.ts'
import type { Config } from '../../core/config/parse.ts'
import type { ReadAddress } from '../../core/request/client-address.ts'
import { hiddenIn } from './hidden.ts'

/** Node's servers write their responses themselves. */
export const ofNode: Lack = [
  needBody,
  'sluice/node does not see the body of the response: use createSluice, and pass the Response to finish',
]

const unseen = 'the proxy of Next.js does not see the response'
export const ofNext: readonly Lack[] = [[needResponse, unseen], [needBody, unseen], hiddenIn]

/**
 * Checks that a configuration which uses the address of the client says where it comes from.
 * @throws {ConfigError} outside of Cloudflare, if it does not
 */
export function checkAddress(config: Config, readAddress: ReadAddress): void {
  if (config.clientAddress !== undefined || !usesAddress(config)) return
  readAddress({ request: new Request('http://localhost/'), remoteAddress: undefined })
}

const usesAddress = ({ policies, allow, deny, shield }: Config) =>
  contains([policies, allow, deny, shield], ({ source, ip }) => source === 'ip' || ip !== undefined)
