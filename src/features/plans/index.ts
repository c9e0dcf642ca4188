/** `sluice/plans`: limits by the plan of a request. */
import type { Feature } from '../../core/feature.ts'
import { compilePlan } from './compile.ts'
import { declaration } from './declaration.ts'

/**
 * Lets policies have a `plan` with `limits`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [
 *     { name: 'per-key', limit: 100, window: '1m', key: 'header:x-tenant', plan: 'header:x-plan', limits: { pro: 5000 } },
 *   ],
 *   use: [plans()],
 * })
 */
export const plans = (): Feature => ({ ...declaration, compile: () => ({ compilePlan }) })
