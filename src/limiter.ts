import type { Decision, LimitState } from './decision.ts'
import { type Describe, type Descriptor, isMet } from './descriptor.ts'
import { StoreError } from './errors.ts'
import type { Seen } from './seen.ts'
import type { RowState, Store, StoreRequest } from './store/store.ts'
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

type Row = Descriptor & { subject: string }

/** Makes `decide`: which policies a request meets, whose quotas, one call to the store. Never throws for what a store does. */
export function createLimiter(
  describe: Describe,
): (seen: Seen, parts: LimiterParts) => Promise<Decision> {
  return async (seen, parts) => {
    const start = Date.now()
    const { denied, policies } = await describe(seen)
    if (denied) return { allowed: false, reason: 'denied', denied, retryAfterMs: null, limits: [] }
    const descriptors = policies.filter(isMet)
    if (descriptors.length === 0) {
      return { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] }
    }
    const rows = await Promise.all(
      descriptors.map(async (descriptor) => ({
        ...descriptor,
        subject: await parts.nameSubject(descriptor.partitionKey),
      })),
    )
    try {
      return await decide(rows, parts.store, Math.max(0, Date.now() - start))
    } catch (error) {
      const named =
        error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name)
      parts.onStoreError(named)
      return decideWithoutStore(rows, parts.local)
    }
  }
}

const enforced = (rows: Row[]) => rows.filter(({ policy }) => policy.mode === 'enforce')
const shadow = (rows: Row[]) => rows.filter(({ policy }) => policy.mode === 'shadow')

async function decide(rows: Row[], store: Store, spentMs: number): Promise<Decision> {
  const enforcing = enforced(rows)
  // Each shadow policy by itself: it refuses for no other, and is charged only where the enforced ones let the request pass.
  const requests: StoreRequest[] = shadow(rows).map((row) => ({
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
  const retryAfterMs = longestWait(limits.filter(({ mode }) => mode === 'enforce'))
  return retryAfterMs === 0
    ? { allowed: true, reason: 'within-limit', retryAfterMs, limits }
    : { allowed: false, reason: 'limited', retryAfterMs, limits }
}

function limitState({ policy, cost }: Row, row: RowState): LimitState {
  const { name, mode, limit, windowMs } = policy
  return { policy: name, mode, limit, windowMs, cost, ...row }
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
