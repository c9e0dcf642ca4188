/** `sluice/distinct`: limits on the number of different values. */
import { distinct as algorithm } from '../../core/connection/algorithms/distinct.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { checkPolicies } from './check.ts'
import { values } from './part.ts'
import { nameValues } from './values.ts'

/**
 * Lets policies have `distinct`, also those of a live document.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'user-names', limit: 5, window: '1h', match: { path: '/login' }, distinct: 'header:x-user' }],
 *   use: [distinct()],
 * })
 */
export const distinct = (): Feature => ({
  name: 'distinct',
  check: checkPolicies,
  compile: () => ({ lua: [values, apart], algorithms: { distinct: algorithm }, nameValues }),
})
