/** Takes over what the other side says about its limits: it may lower the configured ones, and never raises them. */
import type { Decision, LimitState, QuotaState } from '../core/base/decision.ts'
import { StoreError } from '../core/base/errors.ts'
import { Recent } from '../core/base/recent.ts'
import { type Correction, REFUND_MS } from '../core/connection/store.ts'
import type { PolicyLimit } from '../core/decide/limit.ts'
import { operate } from '../core/decide/operate.ts'
import type { LimiterParts } from '../core/decide/question.ts'
import { type ReportedLimit, reportsOf } from './reports.ts'

/** How long a lower limit is in force, ms. Each response that reports it begins this time again. */
const LOWERED_MS = 600_000
/** A report without a window says nothing about a longer window than this, ms: most are about a minute, and GitHub's about an hour. */
const MAX_UNNAMED_MS = 3_600_000
/** Half of the upper bound of the lower limits that are known. */
const MAX_LIMITS = 1_000

/** Fewer units that the other side has left than this one had. */
interface Less {
  limit: PolicyLimit
  left: number
  /** The state of the limit when the call was sent. */
  sent: LimitState
}

const nameOf = ({ subject, terms }: PolicyLimit) => `${subject} ${terms.tag}`

/** Returns a function that applies what a response says that is new. */
export function createLearner(
  partsOf: () => LimiterParts,
  waitUntil: (promise: Promise<unknown>) => void,
) {
  /** The subjects with a report that is charged now: two at once would charge the same units twice. */
  const learning = new Set<string>()
  /** The lower limits that this isolate has reported, by subject and tag. */
  const known = new Recent<{ units: number; since: number }>(MAX_LIMITS)

  /** @returns the units of the lower limit to report, if it is not known yet */
  function lower(limit: PolicyLimit, told: number, now: number): number | undefined {
    const name = nameOf(limit)
    const { terms } = limit
    const before = known.get(name)
    if ((!before || before.units === terms.limit) && told >= terms.limit) return undefined
    const units = Math.max(1, Math.min(told, terms.limit))
    if (before?.units === units && now - before.since < LOWERED_MS / 2) return undefined
    known.set(name, { units, since: now })
    return units
  }

  /** What the store does not take is told again by the next response. */
  return async (
    limits: PolicyLimit[],
    { limits: decided, decidedAt: sentAt }: Decision,
    headers: Headers,
  ): Promise<void> => {
    const now = Date.now()
    const rates = limits.filter(({ terms }) => terms.algorithm !== 'concurrency')
    const lowered: [PolicyLimit, units: number][] = []
    const less: Less[] = []
    for (const told of reportsOf(headers)) {
      const limit = limitFor(told, rates)
      if (!limit) continue
      const units = told.limit === undefined ? undefined : lower(limit, told.limit, now)
      if (units !== undefined) lowered.push([limit, units])
      const sent = decided.find(({ policy }) => policy === limit.terms.name)
      const ours = sent && Math.min(sent.remaining + (sent.reserved ?? 0), units ?? Infinity)
      if (told.left !== undefined && sent && told.left < ours!)
        less.push({ limit, left: told.left, sent })
    }
    const parts = partsOf()
    for (const [limit, units] of lowered)
      await operate({ mode: 'override', units, forMs: LOWERED_MS }, [limit], parts, {
        waitUntil,
      }).catch(() => void known.set(nameOf(limit), { units, since: 0 })) // it is logged
    const subject = limits[0]?.subject
    if (less.length === 0 || sentAt === undefined || learning.has(subject!)) return
    learning.add(subject!)
    const options = { deadlineMs: REFUND_MS, waitUntil }
    try {
      const asked = less.map(({ limit }) => ({ ...limit, cost: 0 }))
      const { states, decidedAt } = await parts.store.decide(
        [{ mode: 'peek', limits: asked }],
        options,
      )
      const debts = less.flatMap((one, index): Correction[] => {
        const cost = debtOf(one, states[0]![index]!, sentAt, decidedAt)
        return cost > 0 ? [{ mode: 'debt', limits: [{ ...one.limit, cost }] }] : []
      })
      if (debts.length > 0) await parts.store.decide(debts, options)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      parts.onStoreError(error)
    } finally {
      learning.delete(subject!)
    }
  }
}

/**
 * The units that this side has left and the other side has not, if it is known for now: what flows back there since is that of the limit, and a
 * window that began since is another one.
 * @param sentAt the time of the decision, and `now` that of `state`, both by the clock of the store, ms since the epoch
 */
function debtOf(
  { limit: { terms }, left, sent }: Less,
  state: QuotaState,
  sentAt: number,
  now: number,
): number {
  const { algorithm, windowMs } = terms
  const ours = state.remaining + (state.reserved ?? 0)
  if (algorithm === 'token-bucket') {
    const size = state.limit ?? terms.limit
    return ours - left - Math.ceil(((now - sentAt) * size) / windowMs)
  }
  const isOther =
    algorithm === 'fixed-window'
      ? now >= sentAt + sent.resetAfterMs
      : algorithm === 'sliding-window' && now - (now % windowMs) > sentAt
  return isOther ? 0 : ours - left
}

const kindOf = ({ terms: { cost } }: PolicyLimit): ReportedLimit['kind'] =>
  cost.usage !== undefined || cost.response !== undefined || cost.body !== undefined
    ? 'tokens'
    : 'requests'

/** The limit that a report is about: of its kind and window, and if there are several, of its size. */
function limitFor(told: ReportedLimit, rates: PolicyLimit[]): PolicyLimit | undefined {
  const { kind, windowMs } = told
  const fits = rates.filter(
    (limit) =>
      kindOf(limit) === kind &&
      (windowMs === undefined
        ? limit.terms.windowMs <= MAX_UNNAMED_MS
        : limit.terms.windowMs === windowMs),
  )
  return fits.length > 1 ? fits.find(({ terms }) => terms.limit === told.limit) : fits[0]
}
