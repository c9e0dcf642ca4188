/** Splits a list of requests among shards, each of which has some of its subjects. */
import type { Limit, StoreReply, StoreRequest, StoreState } from '../store.ts'

/** A limit, and its place in the list. */
export interface Cell {
  request: number
  index: number
  limit: Limit
}

/** One request to a shard, by its index in the list of that shard, and the cells that it answers. */
interface ShardRequest {
  at: number
  cells: Cell[]
}

/** The part of a group on one shard. */
export interface Fragment {
  shard: number
  asks: ShardRequest[]
  /** The limits here of the first request of the group; absent if there are only followers. */
  lead: ShardRequest | undefined
  /** Peeks all limits here before the charge, if more than one shard decides. */
  before: ShardRequest | undefined
}

/** A request and those that follow it. */
export interface Group {
  fragments: Fragment[]
  /** Whether it charges. */
  isTake: boolean
  /** Whether its limits pass together, and several shards have to agree on that. */
  together: boolean
}

/** The requests to each shard for a list, and the meaning of their answers. */
export interface Plan {
  /** Absent if the list goes to one shard as it is. */
  groups: Group[] | undefined
  /** By shard; sparse. */
  asked: StoreRequest[][]
}

/** Requires that a follower has one limit, and that a limit occurs once in a request and its followers. */
export function split(list: StoreRequest[], shardOf: (subject: string) => number): Plan {
  const asked: StoreRequest[][] = []
  const [shard, ...others] = new Set(
    list.flatMap(({ limits }) => limits.map(({ subject }) => shardOf(subject))),
  )
  if (shard !== undefined && others.length === 0) {
    asked[shard] = list
    return { asked, groups: undefined }
  }
  const put = (shard: number, request: StoreRequest, cells: Cell[]): ShardRequest => {
    asked[shard] ??= []
    const at = asked[shard].push({ ...request, limits: cells.map(({ limit }) => limit) }) - 1
    return { at, cells }
  }
  const groups = membersOf(list).map(([first, ...followers]): Group => {
    const byShard = Map.groupBy(
      [first!, ...followers].flatMap((one) => cellsOf(list, one)),
      ({ limit }) => shardOf(limit.subject),
    )
    const request = list[first!]!
    // A follow with nothing before it is decided like a take.
    const leading: StoreRequest = request.mode === 'follow' ? { ...request, mode: 'take' } : request
    const isTake = leading.mode === 'take'
    const together = isTake && byShard.size > 1
    const fragments = [...byShard].map(([shard, cells]): Fragment => {
      const before = together ? put(shard, { mode: 'peek', limits: [] }, cells) : undefined
      const leads = cells.filter(({ request }) => request === first)
      const lead = leads.length > 0 ? put(shard, leading, leads) : undefined
      // The request is decided on another shard, so its outcome is unknown here: charge now, refund if it is refused.
      const mode = lead ? 'follow' : isTake ? 'take' : 'peek'
      const asks = followers.flatMap((follower) => {
        const own = cells.filter(({ request }) => request === follower)
        return own.length > 0 ? put(shard, { mode, limits: [] }, own) : []
      })
      return { shard, lead, before, asks: lead ? [lead, ...asks] : asks }
    })
    return { fragments, isTake, together }
  })
  return { groups, asked }
}

/** Groups the indexes of each request with those of its followers. Leading follows have groups of their own. */
function membersOf(list: StoreRequest[]): number[][] {
  const groups: number[][] = []
  let follows = false
  list.forEach(({ mode }, index) => {
    if (mode === 'follow' && follows) groups.at(-1)!.push(index)
    else groups.push([index])
    follows ||= mode !== 'follow'
  })
  return groups
}

const cellsOf = (list: StoreRequest[], request: number): Cell[] =>
  list[request]!.limits.map((limit, index) => ({ request, index, limit }))

const statesOf = ({ at }: ShardRequest, { states }: StoreReply): StoreState[] => states[at]!

/** Whether a shard admits its part of a request. */
export const admits = ({ lead }: Pick<Fragment, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The limits that a shard has charged, if it admits its part of the request. */
export const chargedIn = ({ asks }: Pick<Fragment, 'asks'>, reply: StoreReply): Limit[] =>
  asks
    .filter((ask) => statesOf(ask, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ limit }) => limit))
    .filter(({ cost }) => cost > 0)

/** Every cell of some requests, with its state. */
export function* statesBy(asks: ShardRequest[], reply: StoreReply): Generator<[Cell, StoreState]> {
  for (const ask of asks) {
    const states = statesOf(ask, reply)
    for (const [index, cell] of ask.cells.entries()) yield [cell, states[index]!]
  }
}
