/** `sluice/header-sets`: rate limit headers for clients that do not read draft-11. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'

/**
 * Lets `headers` have sets other than `'draft-11'`: older drafts, GitHub's headers, and those with a prefix of your own. `createGateway`
 * has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   headers: ['draft-11', { prefix: 'X-RateLimit-', reset: 'epoch' }],
 *   use: [headerSets()],
 * })
 */
export const headerSets = (): Feature => ({ ...declaration, compile: () => ({}) })
