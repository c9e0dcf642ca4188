/** When clients were refused, as far as this page has seen it: the counts have no times. */
import type { Offender, Stats } from '../../../src/features/observe/report.ts'
import { numberText, policyText, timeText } from './text.ts'

/** How many increases of a client are kept. */
const KEPT = 5

/** When the refusals of a client have increased, as this page has seen it. */
interface Seen {
  refusals: number
  increases: { at: number; by: number }[]
}
let seen = new Map<string, Seen>()
/** The counts that `seen` belongs to, and when the page has read them first. */
let source = { from: Number.NaN, at: 0 }
const keyOf = ({ policy, subject }: Pick<Offender, 'policy' | 'subject'>) =>
  JSON.stringify([policy, subject])

/** Compares the counts with those before. */
export function noteRefusals({ now, total: { from, offenders } }: Stats) {
  const isFirst = source.from !== from
  if (isFirst) source = { from, at: now }
  const before = isFirst ? new Map<string, Seen>() : seen
  seen = new Map(
    offenders.map((one) => {
      const { refusals, increases } = before.get(keyOf(one)) ?? { refusals: 0, increases: [] }
      const by = one.refusals - refusals
      const isNew = by > 0 && !isFirst
      const all = isNew ? [{ at: now, by }, ...increases].slice(0, KEPT) : increases
      return [keyOf(one), { refusals: one.refusals, increases: all }]
    }),
  )
}

/** The latest refusals of a client, as sentences. */
export function lastRefusals(policy: string, subject: string): string[] {
  const known = seen.get(keyOf({ policy, subject }))
  if (!known) return ['None that the page has seen.']
  const { increases } = known
  const earlier = known.refusals - increases.reduce((sum, { by }) => sum + by, 0)
  return [
    ...increases.map(
      ({ at, by }) => `${timeText(at)}: ${numberText(by)}, by ${policyText(policy)}`,
    ),
    ...(earlier > 0
      ? [`Before ${timeText(increases.at(-1)?.at ?? source.at)}: ${numberText(earlier)}`]
      : []),
  ]
}

/** When the refusals of a client have increased last. `undefined` if the page has not seen it. */
export const lastSeen = (one: Pick<Offender, 'policy' | 'subject'>): number | undefined =>
  seen.get(keyOf(one))?.increases[0]?.at
