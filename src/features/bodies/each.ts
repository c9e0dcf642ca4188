/** How a policy applies to the messages of a request. */
import { canonical } from '../../core/base/part.ts'
import { keysOf, MAX_UNITS } from '../../core/base/units.ts'
import type { Soon } from '../../core/base/when-known.ts'
import {
  isMatch,
  type Match,
  type Met,
  type Unmet,
  withShare,
  withValues,
} from '../../core/program/match.ts'
import type { Message } from '../../core/request/message.ts'
import type { RequestView } from '../../core/request/view.ts'

type Described = Met | Unmet

export interface Messages {
  /** A message for each one of the body. One unreadable message if there are too many to read. */
  list: Message[]
  /** The number of messages in the body. */
  count: number
  /** The keys in Redis that its quotas may need in addition to those of one quota for each policy. */
  room: { keys: number }
}

/** Adds up the costs of messages with the same quota. Too many quotas count as one message that is `unreadable`. */
export async function describeEach(
  views: RequestView[],
  { list, count, room }: Messages,
  describe: (views: RequestView[]) => Soon<Described>,
  unreadable: Message,
): Promise<Described> {
  const describeOne = (message: Message) => describe(views.map((view) => view.with({ message })))
  if (count === 1) return describeOne(list[0]!)
  if (list.length === 1) {
    const all = (one: Match) => ({ ...one, cost: Math.min(one.cost * count, MAX_UNITS) })
    return mapped(await describeOne(list[0]!), all)
  }
  const results = (await Promise.all(list.map(describeOne))).flat()
  const matches = results.filter(isMatch)
  const unmet = results.filter((one): one is Unmet => !isMatch(one))
  const lacking = unmet.find((one) => one.unmet === 'key')
  const isRefused = lacking?.policy.onMissingKey === 'refuse'
  if (isRefused || matches.length === 0) return lacking ?? unmet[0]!
  const quotas = summed(matches)
  const keys = (quotas.length - 1) * keysOf(matches[0]!.terms)
  if (keys <= room.keys) {
    room.keys -= keys
    return quotas
  }
  const cost = costOf(matches)
  const instead = await describeOne(unreadable)
  return mapped(instead, (one) => ({ ...one, cost: Math.max(one.cost, cost) }))
}

function mapped(result: Described, change: (one: Match) => Match): Described {
  if (Array.isArray(result)) return result.map(change)
  return isMatch(result) ? change(result) : result
}

const costOf = (matches: Match[]) =>
  matches.reduce((sum, { cost }) => Math.min(sum + cost, MAX_UNITS), 0)

/** One match for each quota, with the sum of the costs, the smallest plan and the largest share that must stay free. */
function summed(matches: Match[]): Match[] {
  const quotas = new Map<string, Match[]>()
  for (const match of matches) {
    const name = canonical(match.partitionKey)
    quotas.set(name, [...(quotas.get(name) ?? []), match])
  }
  return [...quotas.values()].map((same) => {
    const [smallest] = same.sort((one, other) => one.terms.limit - other.terms.limit)
    const share = Math.max(...same.map(({ share = 0 }) => share))
    const met = smallest!.distinct
      ? withValues(smallest!, same)
      : { ...smallest!, cost: costOf(same) }
    return withShare(met, share)
  })
}
