/** Names for the networks of trusted proxies. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { compile } from './stages.ts'

/**
 * Lets `trustedProxies` contain names of networks:
 * - `'cloudflare'`: the networks that Cloudflare publishes (https://www.cloudflare.com/ips/), of 2023-09-28
 * - `'loopback'`: the own machine
 * - `'private'`: private and link-local networks, such as `10.0.0.0/8` and `fc00::/7`
 */
export const proxies = (): Feature => ({ ...declaration, compile })
