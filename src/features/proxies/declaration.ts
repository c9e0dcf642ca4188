/**
 * The networks that names in `trustedProxies` stand for:
 * - `'cloudflare'`: those that Cloudflare publishes (https://www.cloudflare.com/ips/), of 2023-09-28
 * - `'loopback'`: the own machine
 * - `'private'`: private and link-local networks, such as `10.0.0.0/8` and `fc00::/7`
 */
import type { FeatureFields } from '../../core/config/feature.ts'
import { trustedNames } from '../../core/config/trusted-names.ts'
import { networks } from './networks.ts'

export const declaration: FeatureFields = {
  name: 'proxies',
  check({ clientAddress }, problem) {
    for (const [name, path] of trustedNames(clientAddress)) {
      if (Object.hasOwn(networks, name)) continue
      problem(path, `one of ${Object.keys(networks).join(', ')}, or a network like "10.0.0.0/8"`)
    }
  },
}
