/** Random calls for the law of compiled scripts: limits, records, clocks and costs, many of them at the edges of windows. */

import type { Limit, StoreRequest, Terms } from '../../src/core/connection/store.ts'
import { createRandom } from '../../tools/bench/random.ts'

/** Tags that begin alike, and characters with a meaning in the patterns of Lua. Names of policies become hashes, so any tag is possible. */
const TAGS = ['a', 'a-', 'a-b', '-', '--', '_', '0', 'b-1', 'n', 'tag', 'zz9']

export interface Case {
  requests: StoreRequest[]
  /** The record of each request. `null`: none. */
  records: (string | null)[]
  /** True if the scripts did not write one of the records. */
  isForeign: boolean
  /** The clock of Redis, ms since the epoch. */
  clock: number
  /** The time that the caller sends. */
  now: number | undefined
}

/** Draws limits that apply together, and calls with these limits. */
export function drawCases(seed: number, count: number): Case[] {
  const random = createRandom(seed)
  const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
  const pick = <T>(values: readonly T[]) => values[whole(0, values.length - 1)]!
  const chance = (part: number) => random() < part

  const base = pick([1_000_000, 1_700_000_000_000, 1_795_000_000_000]) + whole(0, 100_000)
  const isLarge = chance(0.1)
  const tags = [...TAGS].sort(() => random() - 0.5)
  const terms = Array.from({ length: chance(0.1) ? whole(5, 7) : whole(1, 3) }, (_, index) => {
    const windowMs = isLarge ? 1 : pick([1, 7, 1000, 1001, 60_000, 3_600_000])
    const units = () => (isLarge ? whole(2 ** 50, 2 ** 51) : whole(1, 12))
    return {
      tag: tags[index]!,
      algorithm: pick(['fixed-window', 'sliding-window', 'token-bucket'] as const),
      limit: units(),
      windowMs,
      burst: units(),
      align: pick(['clock', 'first-request'] as const),
      localShare: 1,
    } satisfies Terms
  })
  const length = whole(1000, 90_000)
  const calendar = terms.map(
    ({ algorithm }) => algorithm === 'fixed-window' && !isLarge && chance(0.3),
  )

  /** Times at which something changes. The clock is near one of them. */
  let edges: number[] = []
  const state = ({ tag, algorithm, windowMs }: Terms) => {
    const windows = whole(-3, 1)
    const time = Math.max(
      0,
      algorithm === 'sliding-window'
        ? base - (base % windowMs) + windows * windowMs
        : base + windows * whole(0, windowMs),
    )
    const life =
      algorithm === 'sliding-window'
        ? pick([1, 2, 2, 2, 3]) * windowMs
        : pick([windowMs, windowMs, whole(1, 3 * windowMs), 500])
    edges.push(time, time + life, time + windowMs, time + life - 1000)
    const units = () => (isLarge ? whole(0, 2 ** 51) : whole(0, 14))
    const first = algorithm === 'token-bucket' ? units() * windowMs + whole(0, windowMs) : units()
    return `${tag}:${time}:${life}:${first}${algorithm === 'sliding-window' ? `:${units()}` : ''};`
  }
  const other = (index: number) =>
    state({ ...pick(terms), tag: `${pick(['o', 'a-b-', '-'])}${index}` })
  const foreign = () =>
    pick([
      '',
      '1;',
      'junk',
      '2;a:1:2:3;',
      `1;${terms[0]!.tag}:1:2;`,
      `1;${terms[0]!.tag}:x:1:1;`,
      `1;${state(terms[0]!).slice(0, -1)}`,
      `1;${terms.map((one) => `${one.tag}:1:2:3:4:5;`).join('')}`,
      `1;${terms.map((one) => `${one.tag}:::;`).join('')}`,
    ])
  /** The states of all limits, mostly in their order. */
  const record = (): string | null => {
    if (chance(0.1)) return null
    const own = terms.map(state)
    if (chance(0.15)) own.sort(() => random() - 0.5)
    if (chance(0.15)) own.splice(whole(0, own.length - 1), 1)
    if (chance(0.2)) own.splice(whole(0, own.length), 0, ...[1, 2].slice(whole(0, 1)).map(other))
    return `1;${own.join('')}`
  }

  return Array.from({ length: count }, (_, number) => {
    edges = [base]
    const keys = chance(0.4) ? whole(2, 5) : 1
    const unit = chance(0.6)
    const isForeign = chance(0.1)
    const requests = Array.from({ length: keys }, (_, index): StoreRequest => {
      const limits = terms.map((one, at): Limit => {
        const begin = base - whole(-100, length)
        const period = calendar[at] && ([begin, begin + length, begin + length + 5000] as const)
        if (period) edges.push(...period)
        const cost = unit ? 1 : isLarge ? whole(1, 2 ** 51) : pick([1, 1, 2, 5, 13])
        return {
          subject: `s${seed}-${number}-${index}`,
          terms: one,
          cost,
          ...(period && { period: [...period] }),
        }
      })
      return { mode: 'take', limits }
    })
    const records = requests.map((_, index) => (isForeign && index === 0 ? foreign() : record()))
    const clock = Math.max(0, pick(edges) + pick([-1, 0, 0, 1, 999, 1000, 1001, whole(0, 5000)]))
    const now = chance(0.3) ? pick([clock, clock + 3]) : undefined
    return { requests, records, isForeign, clock, now }
  })
}
