/** Estimates what Upstash would bill for a call, from what it has changed. */
import { hasOwnKey } from '../../../src/core/base/units.ts'
import type { StoreRequest } from '../../../src/core/connection/store.ts'
import type { Parts, Record } from '../../../src/stores/durable-objects/record.ts'

/** What the same calls cost with Redis. */
export interface Bill {
  calls: number
  commands: number
}

/** Names the state of a tag by its subject too. */
export const nameOf = (subject: string, tag: string) => `${subject} ${tag}`
const subjectOf = (name: string) => name.slice(0, name.lastIndexOf(' '))

/** Adds the usual commands of each change of a log, of slots and of values to the bill. lua/README.md lists them. */
export const billed = (parts: Parts, bill: Bill): Parts => ({
  ...parts,
  setLog(...change) {
    bill.commands += 3
    parts.setLog(...change)
  },
  setSlots(...change) {
    bill.commands += 2
    parts.setSlots(...change)
  },
})

/**
 * The commands of a call without the changes of logs and slots. It is exact for windows and buckets.
 * @param before the states of all subjects before the call
 * @param sendsTime true with `clock: 'edge'`
 */
export function commandsOf(
  requests: StoreRequest[],
  before: Record,
  after: Record,
  now: number,
  sendsTime: boolean,
): number {
  const limits = requests.flatMap((request) => request.limits)
  const apart = limits.filter(({ terms }) => hasOwnKey(terms.algorithm))
  const hasRecord = limits.some(
    ({ terms, penalty, override }) => !hasOwnKey(terms.algorithm) || penalty || override,
  )
  let commands = 1 + (sendsTime ? 0 : 1) + (hasRecord ? 1 : 0)
  for (const { terms } of apart) commands += terms.algorithm === 'sliding-log' ? 3 : 1
  const changed = new Set<string>()
  for (const [name, state] of after) if (before.get(name) !== state) changed.add(subjectOf(name))
  for (const [name, { end }] of before)
    if (end > now && !after.has(name)) changed.add(subjectOf(name))
  return commands + changed.size
}
