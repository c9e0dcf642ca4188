/** Refusals that need no asking: what an isolate has seen proves them. */
import type { Descriptor } from './descriptor.ts'
import type { Row } from './row.ts'
import { isOpen } from './settle.ts'
import type { RowState } from './store/store.ts'

/** An answer of the store to the limits of one request. */
interface Answer {
  /** By the store's clock, ms since the epoch. */
  at: number
  rows: RowState[]
}

interface Kept extends Answer {
  /** Whose limits they are that refuse. */
  refusing: string[]
  sentAt: number
  receivedAt: number
  /** Until when it proves, ms since the epoch. */
  until: number
  bytes: number
}

/**
 * How long what others did may go unseen, in ms: only a reset, an unban or a give-back by another isolate, and a charge by other
 * terms (another plan, or policies that have not come here yet), can make a quota better than it was seen.
 */
const MAX_AGE_MS = 10_000
/** Of some 128 MB of an isolate. Beyond it the least recently used go. */
const MAX_BYTES = 4 * 1024 * 1024
/** So many subjects that got something back are known by name; beyond it what is on its way is forgotten of all. */
const MAX_BETTER = 1_000

/**
 * Refusals that the store would repeat, kept until they may change.
 *
 * A limit with nothing left takes no charge, so until something of it comes back (`nextAfterMs`) nobody can change it, and its
 * numbers run with the clock. Of a limit that refuses with something left (a high cost) others may take more: that proves a refusal,
 * but not its numbers, and is not kept. Nor is what a call must not miss: a refusal that counts towards a ban, and limits that
 * requests give back to when they are answered, unless a ban refuses. Limits that had room are told as they were seen.
 *
 * Time counts from when the call was sent, the earliest it can have been decided: nobody is refused who would pass. What is left to
 * wait counts from when the answer came: whoever waits as told does not come too early, and at most a round trip too late.
 */
export interface Proofs {
  /** The answer that the store would give now; `undefined` where only it knows. */
  find(key: string, now: number): Answer | undefined
  keep(key: string, asked: Row[], answer: Answer, sentAt: number, receivedAt: number): void
  /** Whenever this isolate makes a quota better: also what is still on its way. With subjects only refusals that one of theirs had a part in. */
  forget(now: number, subjects?: string[]): void
}

export function createProofs(maxBytes = MAX_BYTES): Proofs {
  const kept = new Map<string, Kept>() // the least recently used first
  let bytes = 0
  let forgotten = Number.NEGATIVE_INFINITY // all that was sent until then
  const better = new Map<string, number>() // and by subject

  function remove(key: string, { bytes: size }: Kept) {
    kept.delete(key)
    bytes -= size
  }

  return {
    find(key, now) {
      const found = kept.get(key)
      if (!found) return undefined
      kept.delete(key)
      // A clock that was set back proves nothing either.
      if (now >= found.until || now < found.sentAt) {
        bytes -= found.bytes
        return undefined
      }
      kept.set(key, found)
      const elapsed = Math.max(0, now - found.receivedAt)
      return {
        at: found.at + elapsed,
        rows: found.rows.map((row) => (row.allowed ? row : after(row, elapsed))),
      }
    },
    keep(key, asked, { at, rows }, sentAt, receivedAt) {
      const lasts = provenFor(asked, rows)
      const isSetBack = receivedAt < sentAt // the clock, while the answer was on its way
      if (lasts <= 0 || sentAt <= forgotten || isSetBack) return
      const refusing = asked.flatMap(({ subject }, index) => (rows[index]!.allowed ? [] : subject))
      if (refusing.some((one) => sentAt <= (better.get(one) ?? forgotten))) return
      const known = kept.get(key)
      if (known) remove(key, known)
      const size = 2 * key.length + 200 * (rows.length + 1)
      kept.set(key, {
        at,
        rows,
        refusing,
        sentAt,
        receivedAt,
        until: sentAt + Math.min(lasts, MAX_AGE_MS),
        bytes: size,
      })
      bytes += size
      for (const [oldest, entry] of kept) {
        if (bytes <= maxBytes) break
        remove(oldest, entry)
      }
    },
    forget(now, subjects) {
      for (const one of subjects ?? []) better.set(one, now)
      if (!subjects || better.size > MAX_BETTER) {
        forgotten = now
        better.clear()
      }
      for (const [key, entry] of kept) {
        if (!subjects || subjects.some((one) => entry.refusing.includes(one))) remove(key, entry)
      }
    },
  }
}

/** Names all that a refusal depends on: whose quotas, by which terms, at what price. */
export const proofKey = (descriptors: Descriptor[]): string =>
  JSON.stringify(
    descriptors.map(({ policy, partitionKey, cost, period }) => [
      policy.tag,
      policy.mode,
      policy.limit,
      policy.burst,
      policy.penalty,
      isOpen({ policy }),
      cost,
      period?.[0],
      partitionKey.map(([label, value]) => [label, value ?? null]),
    ]),
  )

/** For how long, in ms, a refusal stays what it is; 0 for none, and for what nobody can know. */
function provenFor(descriptors: Descriptor[], rows: RowState[]): number {
  let lasts = Number.POSITIVE_INFINITY
  let refused = false
  for (const [index, { policy }] of descriptors.entries()) {
    const { allowed, remaining, retryAfterMs, nextAfterMs, bannedForMs } = rows[index]!
    if (policy.mode === 'shadow') {
      // It proves nothing, but that it would refuse, too, is told no longer than it is so.
      if (!allowed) lasts = Math.min(lasts, bannedForMs ?? retryAfterMs ?? lasts)
      continue
    }
    if (policy.penalty && !bannedForMs) return 0 // each refusal of it counts
    if (allowed) continue
    refused = true
    if (bannedForMs) lasts = Math.min(lasts, bannedForMs)
    else if (remaining > 0 || retryAfterMs === null || isOpen({ policy })) return 0
    // Of a lease others give back what they did not need: they hold it for so long.
    else lasts = Math.min(lasts, nextAfterMs, policy.lease?.ttlMs ?? MAX_AGE_MS)
  }
  return refused ? lasts : 0
}

/** A refusing row some time later. */
function after({ retryAfterMs, resetAfterMs, nextAfterMs, ...row }: RowState, elapsed: number) {
  const left = (wait: number) => Math.max(0, wait - elapsed)
  return {
    ...row,
    retryAfterMs: retryAfterMs === null ? null : left(retryAfterMs),
    resetAfterMs: left(resetAfterMs),
    nextAfterMs: left(nextAfterMs),
    ...(row.bannedForMs && { bannedForMs: left(row.bannedForMs) }),
  }
}
