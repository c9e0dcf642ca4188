import type { LimitState } from '../base/decision.ts'
import type { Descriptor } from '../match/match.ts'
import type { NameSubject } from '../match/subject.ts'
import type { LimitRow, RowState } from '../store/store.ts'

/** A limit that a request has to meet, as the store is asked about it. */
export type Row = Descriptor & LimitRow

/** @param slot the id under which slots are held, for policies with `concurrency` */
export async function rowOf(
  descriptor: Descriptor,
  slot: string | undefined,
  nameSubject: NameSubject,
): Promise<Row> {
  const { algorithm, penalty } = descriptor.policy
  return {
    ...descriptor,
    subject: await nameSubject(descriptor.partitionKey),
    ...(penalty && { penalty }),
    ...(algorithm === 'concurrency' && slot !== undefined && { slot }),
  }
}

/** How the policies of these rows stand, each once: where a policy has several quotas in a row, as the strictest of them. */
export function limitStates(rows: Descriptor[], states: RowState[]): LimitState[] {
  const limits: LimitState[] = []
  for (const [index, row] of rows.entries()) {
    const state = limitState(row, states[index]!)
    const before = limits.at(-1)
    if (before?.policy === state.policy) limits[limits.length - 1] = strictest(before, state)
    else limits.push(state)
  }
  return limits
}

/** One state that holds for both: neither has more left, and neither makes a client wait longer. */
function strictest(one: LimitState, other: LimitState): LimitState {
  const fuller = one.remaining > other.remaining ? one : other
  const emptier = fuller === one ? other : one
  const isTie = one.remaining === other.remaining
  const bannedForMs = Math.max(one.bannedForMs ?? 0, other.bannedForMs ?? 0)
  const earliest = Math.min(
    one.at ?? Number.POSITIVE_INFINITY,
    other.at ?? Number.POSITIVE_INFINITY,
  )
  return {
    ...emptier,
    allowed: one.allowed && other.allowed,
    retryAfterMs: longestWait([one, other]),
    resetAfterMs: Math.max(one.resetAfterMs, other.resetAfterMs),
    ...(isTie && { nextAfterMs: Math.max(one.nextAfterMs, other.nextAfterMs) }),
    ...(bannedForMs > 0 && { bannedForMs }),
    ...(earliest < Number.POSITIVE_INFINITY && { at: earliest }),
  }
}

/** What is told of a row that the store has answered. */
export function limitState({ policy, cost, period }: Descriptor, row: RowState): LimitState {
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
export function longestWait(rows: Pick<RowState, 'retryAfterMs'>[]): number | null {
  const waits = rows.map(({ retryAfterMs }) => retryAfterMs)
  return waits.includes(null) ? null : Math.max(0, ...(waits as number[]))
}
