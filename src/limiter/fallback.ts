/** What becomes of a request whose limits no store has answered for. */
import type { Decision, Fallback } from '../base/decision.ts'
import type { Store } from '../store/store.ts'
import { longestWait, type Row } from './limit.ts'
import { type Charge, isOpen } from './settle.ts'

/** The answer of the fallback, and what it has charged to this isolate's own counters. */
export type Instead = Pick<Decision, 'allowed' | 'retryAfterMs'> & {
  fallback: Fallback
  charge?: Charge
}

/**
 * By each policy's `onStoreError`: `deny` wins, then what the local share says. No number of it is a limit's own. Policies in shadow
 * have no say.
 */
export async function withoutStore(
  rows: Row[],
  mode: 'take' | 'peek',
  local: Store,
): Promise<Instead> {
  const choosing = (choice: Fallback) =>
    rows.filter(({ policy }) => policy.mode === 'enforce' && policy.onStoreError === choice)
  if (choosing('deny').length > 0) return { allowed: false, fallback: 'deny', retryAfterMs: null }
  const counted = choosing('local')
  if (counted.length === 0) return { allowed: true, fallback: 'allow', retryAfterMs: 0 }
  const { now, requests } = await local.decide([{ mode, rows: counted }])
  const retryAfterMs = longestWait(requests[0]!)
  const allowed = retryAfterMs === 0
  const isCharged = allowed && mode === 'take' && counted.some(isOpen)
  const charged = new Map(counted.map((row) => [row, now]))
  const charge = { rows: counted.filter(isOpen), charged, store: local }
  return { allowed, fallback: 'local', retryAfterMs, ...(isCharged && { charge }) }
}
