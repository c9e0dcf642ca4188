/** Takes over what the other side says about its limits: it may lower the configured ones, and never raises them. */
import { Recent } from '../../core/base/recent.ts'
import type { PolicyLimit } from '../../core/decide/limit.ts'
import { type Report, reportsOf } from './reports.ts'
import { ratesOf } from './stores.ts'
import type { Turn, TurnReport } from './turn-store.ts'

/** How long a lower limit is in force, ms. Each response that reports it begins this time again. */
const LOWERED_MS = 600_000
/** A report without a window says nothing about a longer window than this, ms: most are about a minute, and GitHub's about an hour. */
const MAX_UNNAMED_MS = 3_600_000
/** Half of the upper bound of the lower limits that are known. */
const MAX_LIMITS = 1_000
/** More units than any limit has left. */
const UNKNOWN = 2 ** 51

/** Returns the report for the store after a response, or `undefined` if it says nothing new. */
export function createLearner() {
  /** The lower limits that this isolate has reported, by subject and tag. */
  const lowered = new Recent<{ limit: number; since: number }>(MAX_LIMITS)

  /** @returns the lower limit to report, if it is not known yet */
  function lower({ subject, terms: { tag, limit } }: PolicyLimit, told: number, now: number) {
    const name = `${subject} ${tag}`
    const known = lowered.get(name)
    if ((!known || known.limit === limit) && told >= limit) return undefined
    const wanted = Math.max(1, Math.min(told, limit))
    if (known?.limit === wanted && now - known.since < LOWERED_MS / 2) return undefined
    lowered.set(name, { limit: wanted, since: now })
    return { tag, limit: wanted, forMs: LOWERED_MS }
  }

  return (
    limits: PolicyLimit[],
    turn: Pick<Turn, 'place' | 'left'>,
    { headers }: Pick<Response, 'headers'>,
    coolMs: number,
    now: number,
  ): TurnReport | undefined => {
    const rates = ratesOf(limits)
    const report: TurnReport = {
      do: 'learn',
      limits: [],
      sentAt: turn.place ?? now,
      coolMs,
      lowered: [],
    }
    for (const told of reportsOf(headers)) {
      const limit = limitFor(told, rates)
      if (!limit) continue
      const less = told.limit === undefined ? undefined : lower(limit, told.limit, now)
      if (less) report.lowered.push(less)
      const ours = turn.left[rates.indexOf(limit)]
      if (told.left !== undefined && ours !== undefined && told.left < ours) {
        report.limits.push({ ...limit, cost: told.left })
      }
    }
    if (report.limits.length + report.lowered.length === 0 && coolMs === 0) return undefined
    // The subject is that of the limits.
    if (report.limits.length === 0) report.limits.push({ ...limits[0]!, cost: UNKNOWN })
    return report
  }
}

const kindOf = ({ policy: { cost } }: PolicyLimit): Report['kind'] =>
  cost.usage !== undefined || cost.response !== undefined || cost.body !== undefined
    ? 'tokens'
    : 'requests'

/** The limit that a report is about: of its kind and window, and if there are several, of its size. */
function limitFor(told: Report, rates: PolicyLimit[]): PolicyLimit | undefined {
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
