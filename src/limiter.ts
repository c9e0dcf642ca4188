import type { Decision, LimitState } from './decision.ts'
import { type Describe, type Descriptor, isMet } from './descriptor.ts'
import { StoreError } from './errors.ts'
import type { Seen } from './seen.ts'
import { type Charge, isOpen } from './settle.ts'
import type { LimitRow, RowState, Store, StoreRequest } from './store/store.ts'
import type { NameSubject } from './subject.ts'

/** What a limiter reaches the outside through. */
export interface LimiterParts {
  store: Store
  /** Answers for policies with `onStoreError: 'local'` when the store does not. */
  local: Store
  nameSubject: NameSubject
  /** Told of every decision that the store could not make. */
  onStoreError: (error: StoreError) => void
}

/** A limit that a request has to meet. */
export type Row = Descriptor & LimitRow

/** A decision, and what of its charge waits for the answer. */
export interface Outcome {
  decision: Decision
  charge?: Charge
}

/** Makes `decide`: which policies a request meets, whose quotas, one call to the store. Never throws for what a store does. */
export function createLimiter(
  describe: Describe,
): (seen: Seen, parts: LimiterParts) => Promise<Outcome> {
  return async (seen, parts) => {
    const start = Date.now()
    const { denied, policies } = await describe(seen)
    if (denied) {
      return {
        decision: { allowed: false, reason: 'denied', denied, retryAfterMs: null, limits: [] },
      }
    }
    const descriptors = policies.filter(isMet)
    if (descriptors.length === 0) {
      return { decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] } }
    }
    const rows = await Promise.all(descriptors.map((one) => rowOf(one, parts)))
    try {
      return await decide(rows, parts.store, Math.max(0, Date.now() - start))
    } catch (error) {
      const named =
        error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name)
      parts.onStoreError(named)
      return { decision: await decideWithoutStore(rows, parts.local) }
    }
  }
}

async function rowOf(descriptor: Descriptor, { nameSubject }: LimiterParts): Promise<Row> {
  const { algorithm, penalty } = descriptor.policy
  return {
    ...descriptor,
    subject: await nameSubject(descriptor.partitionKey),
    ...(penalty && { penalty }),
    ...(algorithm === 'concurrency' && { slot: crypto.randomUUID() }),
  }
}

const enforced = (rows: Row[]) => rows.filter(({ policy }) => policy.mode === 'enforce')
const shadow = (rows: Row[]) => rows.filter(({ policy }) => policy.mode === 'shadow')

async function decide(rows: Row[], store: Store, spentMs: number): Promise<Outcome> {
  const enforcing = enforced(rows)
  // Each shadow policy by itself: it refuses for no other, and is charged only where the enforced ones let the request pass.
  const requests: (StoreRequest & { rows: Row[] })[] = shadow(rows).map((row) => ({
    mode: enforcing.length > 0 ? 'shadow' : 'take',
    rows: [row],
  }))
  if (enforcing.length > 0) requests.unshift({ mode: 'take', rows: enforcing })
  const waiting = enforcing.length > 0 ? enforcing : rows // nobody waits less for a shadow's sake
  const deadlineMs = Math.min(...waiting.map(({ policy }) => policy.deadlineMs))
  // Half is the store's in any case: a key function may wait for the client, and whoever is slow must not go uncounted for it.
  const withinMs = Math.ceil(Math.max(deadlineMs / 2, deadlineMs - spentMs))
  const reply = await store.decide(requests, { deadlineMs: withinMs })
  const states = new Map(
    requests.flatMap(({ rows }, g) => rows.map((row, r) => [row, reply.requests[g]![r]!] as const)),
  )
  const limits = rows.map((row) => limitState(row, states.get(row)!))
  const deciding = limits.filter(({ mode }) => mode === 'enforce')
  const retryAfterMs = longestWait(deciding)
  if (retryAfterMs !== 0) {
    const banned = deciding.some(({ bannedForMs }) => bannedForMs)
    return {
      decision: { allowed: false, reason: banned ? 'banned' : 'limited', retryAfterMs, limits },
    }
  }
  const open = rows.filter((row) => isOpen(row) && row.cost > 0 && states.get(row)!.allowed)
  return {
    decision: { allowed: true, reason: 'within-limit', retryAfterMs, limits },
    ...(open.length > 0 && { charge: { rows: open, receipt: reply.now } }),
  }
}

function limitState({ policy, cost, period }: Row, row: RowState): LimitState {
  const { name, mode, limit, algorithm } = policy
  const windowMs = period ? period[1] - period[0] : policy.windowMs
  const unit = algorithm === 'concurrency' && ({ unit: 'concurrent-requests' } as const)
  return { policy: name, mode, limit, ...unit, windowMs, cost, ...row, ...bannedState(row) }
}

/** Of a ban: whatever the limit has left, nothing of it is to be had before the end. */
function bannedState({ bannedForMs, resetAfterMs, nextAfterMs }: RowState) {
  return (
    bannedForMs && {
      remaining: 0,
      resetAfterMs: Math.max(resetAfterMs, bannedForMs),
      nextAfterMs: Math.max(nextAfterMs, bannedForMs),
    }
  )
}

/** `null` (never) if any says so, else the longest; 0 when all have room. */
function longestWait(rows: RowState[]): number | null {
  const waits = rows.map(({ retryAfterMs }) => retryAfterMs)
  return waits.includes(null) ? null : Math.max(0, ...(waits as number[]))
}

/** By each policy's `onStoreError`: `deny` wins, then what the local share says. No number of it is a limit's own. */
async function decideWithoutStore(rows: Row[], local: Store): Promise<Decision> {
  const choosing = (choice: string) =>
    enforced(rows).filter(({ policy }) => policy.onStoreError === choice)
  const nothing = { reason: 'store-error' as const, limits: [] }
  if (choosing('deny').length > 0) {
    return { ...nothing, allowed: false, degraded: 'deny', retryAfterMs: null }
  }
  const counted = choosing('local')
  if (counted.length === 0) return { ...nothing, allowed: true, degraded: 'allow', retryAfterMs: 0 }
  const { requests } = await local.decide([{ mode: 'take', rows: counted }])
  const retryAfterMs = longestWait(requests[0]!)
  return { ...nothing, allowed: retryAfterMs === 0, degraded: 'local', retryAfterMs }
}
