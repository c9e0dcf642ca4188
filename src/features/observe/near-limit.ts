/** Notices about clients near their limit: at most one for each client, threshold and window. */
import { systemClock } from '../../core/base/clock.ts'
import type { LimitState } from '../../core/base/decision.ts'
import { LruCache } from '../../core/base/lru.ts'
import type { DecidedBy } from '../../core/decide/observer.ts'
import { type DecisionSummary, freeUnits } from './binding.ts'
import { createSender, type SenderOptions } from './webhook.ts'

/** The maximum memory of the marks: at least 9,000 clients near a limit. An isolate has 128 MB. */
const MAX_BYTES = 4 * 1024 * 1024
const bytesOf = (key: string) => 2 * key.length + 250
/** After a failed delivery, the next decision from this time on sends the notice again, ms. */
const RETRY_MS = 60_000
/** The upper bound of the rounding error of a share, in percent. */
const ROUNDING = 1e-9

/** The JSON document that is posted. Times are ms since the epoch. */
export interface NearLimitNotice {
  v: 1
  type: 'quota.near-limit'
  /** The time of the decision, by the clock of the isolate. */
  time: number
  policy: string
  /** The label of the client, by `observe.subjects`. */
  subject: string
  /** The parts of its key that name a customer: the digest of an API key, and with `subjects: 'plain'` all. Absent without any. */
  key?: Record<string, string>
  plan?: string
  /** The used share of the quota that was reached, in percent. */
  threshold: number
  /** The size of the quota, in units. */
  limit: number
  /** The remaining units after the decision. */
  remaining: number
  windowMs: number
  /** When the whole quota is available again, if no further request is charged. */
  resetAt: number
}

/** The decision of a notice. Its subject and its share are those of the limit. */
type NearLimitEvent = Pick<DecisionSummary, 'time' | 'decidedBy'> & {
  [K in 'subject' | 'remainingShare' | 'plan']?: DecisionSummary[K] | undefined
} & { key?: NearLimitNotice['key'] | undefined }

interface NearLimitContext {
  env: Record<string, unknown>
  waitUntil: (promise: Promise<unknown>) => void
  /** The time of the decision by the store's clock, ms since the epoch. */
  decidedAt: number | undefined
  /** True for the algorithm `fixed-window`, also with a calendar window. */
  isFixedWindow: boolean
  /** The deliveries of the same request to wait for. */
  after?: Promise<unknown> | undefined
}

export type NearLimit = ReturnType<typeof createNearLimit>

/** @param thresholds percentages of the quota, above 0 and at most 100 */
export function createNearLimit({
  thresholds,
  ...options
}: SenderOptions & { thresholds: readonly number[] }) {
  const { clock = systemClock } = options
  const sender = createSender(options)
  const ascending = [...new Set(thresholds)].sort((one, other) => one - other)
  /** For each client and window: the time from which the notice of each threshold may be sent, ms since the epoch. */
  const marks = new LruCache<number[]>({ maxSize: MAX_BYTES, sizeOf: bytesOf })

  const usedOf = (remainingShare = 1) => 100 * (1 - remainingShare) + ROUNDING
  const lowest = ascending[0] ?? Number.POSITIVE_INFINITY
  /** True if a decision may have a notice. The first call logs a missing secret. */
  const isNear = (remainingShare: number | undefined, env: Record<string, unknown>): boolean =>
    sender.isReady(env) && usedOf(remainingShare) >= lowest

  return {
    isNear,
    /**
     * Sends a notice for each threshold that a decision reaches, one after the other: a Worker may wait for six responses at a time, and a
     * receiver that hangs must not keep the origin waiting. Does no I/O before it returns the end of the last delivery, or `context.after`.
     */
    decided(
      { time, decidedBy, subject, remainingShare, key: parts, plan }: NearLimitEvent,
      limit: LimitState,
      { env, waitUntil, isFixedWindow, after, ...context }: NearLimitContext,
    ): Promise<unknown> | undefined {
      if (!isNear(remainingShare, env) || subject === undefined) return after
      const { policy, windowMs, resetAfterMs, decidedAt = context.decidedAt } = limit
      if (decidedAt === undefined || !isReported(decidedBy, limit)) return after

      const window = windowOf(decidedAt, limit, isFixedWindow)
      const key = `${window} ${policy} ${subject}`
      const mark = marks.get(key) ?? []
      marks.set(key, mark)
      const send = async (notice: NearLimitNotice, index: number, before?: Promise<unknown>) => {
        const name = JSON.stringify([policy, subject, window, notice.threshold])
        const isDone = await sender.send(name, JSON.stringify(notice), before)
        mark[index] = isDone ? Number.POSITIVE_INFINITY : clock() + RETRY_MS
      }
      const now = clock()
      let last = after
      for (const [index, threshold] of ascending.entries()) {
        if (threshold > usedOf(remainingShare)) break
        if (now < (mark[index] ?? now)) continue
        mark[index] = now + RETRY_MS // also if the request is cancelled before the notice is delivered
        const notice: NearLimitNotice = {
          ...{ v: 1, type: 'quota.near-limit', time, policy, subject },
          ...(parts && { key: parts }),
          ...(plan !== undefined && { plan }),
          ...{ threshold, limit: limit.limit, remaining: freeUnits(limit), windowMs },
          resetAt: decidedAt + resetAfterMs,
        }
        last = send(notice, index, last)
        waitUntil(last)
      }
      return last
    },
    dropped: sender.dropped,
  }
}

/**
 * False for:
 * - a policy in shadow mode, because it refuses no request
 * - `concurrency`, which has no window: its requests in flight cross a threshold again and again
 * - a ban, which says nothing about the quota
 * - a decision without the store. A cached refusal repeats one that was reported. A local count is not the quota.
 */
const isReported = (decidedBy: DecidedBy, { mode, unit, bannedForMs }: LimitState): boolean =>
  mode === 'enforce' &&
  unit !== 'concurrent-requests' &&
  !bannedForMs &&
  (decidedBy === 'store' || decidedBy === 'lease')

/**
 * Identifies the window of a decision in every isolate, by the clock of the store: the end of a fixed window, rounded because leased units
 * may report it early by the duration of a call; otherwise the number of windows since the epoch.
 */
function windowOf(
  decidedAt: number,
  { windowMs, resetAfterMs }: LimitState,
  isFixedWindow: boolean,
): number {
  if (!isFixedWindow) return Math.floor(decidedAt / windowMs)
  return Math.round((decidedAt + resetAfterMs) / Math.min(1_000, windowMs))
}
