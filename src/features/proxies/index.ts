/** `sluice/proxies`: names for the networks of trusted proxies. */
import { trustedNames } from '../../core/config/trusted-names.ts'
import type { Feature } from '../../core/feature.ts'
import { networks } from './networks.ts'

/**
 * Lets `trustedProxies` contain names of networks:
 * - `'cloudflare'`: the networks that Cloudflare publishes (https://www.cloudflare.com/ips/), of 2023-09-28
 * - `'loopback'`: the own machine
 * - `'private'`: private and link-local networks, such as `10.0.0.0/8` and `fc00::/7`
 * @example
 * rateLimiter({
 *   clientAddress: { header: 'cf-connecting-ip', trustedProxies: 'cloudflare' },
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   use: [proxies()],
 * })
 */
export const proxies = (): Feature => ({
  name: 'proxies',
  check({ clientAddress }, problem) {
    for (const [name, path] of trustedNames(clientAddress)) {
      if (Object.hasOwn(networks, name)) continue
      problem(path, `one of ${Object.keys(networks).join(', ')}, or a network like "10.0.0.0/8"`)
    }
  },
  compile: () => ({ networks }),
})
