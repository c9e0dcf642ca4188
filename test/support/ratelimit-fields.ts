import type { Decision } from '../../src/core/base/decision.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { HeaderSet } from '../../src/core/config/schema/config.ts'
import { setOf } from '../../src/core/respond/ratelimit-fields/sets.ts'
import { withDecisionFields } from '../../src/core/respond/response.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { allowed, state } from './decisions.ts'

/** Every kind of header set. */
export const every: HeaderSet[] = [
  'draft-11',
  'draft-7',
  'draft-6',
  'github',
  ...(['epoch', 'delta', 'iso'] as const).map((reset) => ({ prefix: 'X-RateLimit-', reset })),
]
/** Sets as `headers` of a parsed configuration has them. */
export const parsed = (headers: HeaderSet | HeaderSet[]) =>
  parseConfig({ policies: [], headers }, defaultFields).headers

export const fieldValues = (set: HeaderSet, decision: Decision) =>
  setOf(parsed(set)[0]!).valuesFor(decision)

export const namesOf = (set: HeaderSet) => setOf(parsed(set)[0]!).names

/** The fields that a set reports for a decision. */
export const fieldsOf = (set: HeaderSet, decision: Decision) =>
  Object.fromEntries(fieldValues(set, decision)?.fields ?? [])

/** The states of two policies of one request. */
export const hour = state({
  policy: 'hour',
  limit: 1000,
  windowMs: 3_600_000,
  remaining: 500,
  resetAfterMs: 1_800_001,
  nextAfterMs: 3_600,
})
export const day = state({
  policy: 'day',
  limit: 5000,
  windowMs: 86_400_000,
  remaining: 2000,
  resetAfterMs: 51_840_000,
  nextAfterMs: 17_280,
})

/** The fields of a response of an origin after the limiter's fields are merged into them. */
export function merged(
  set: HeaderSet | HeaderSet[],
  origin: Record<string, string>,
  remaining = 9,
) {
  const decision = allowed(state({ remaining }))
  const headers = parsed(set)
  const response = new Response('x', { headers: new Headers(origin) })
  const result = withDecisionFields(response, decision, { headers })
  return Object.fromEntries(result.headers)
}
