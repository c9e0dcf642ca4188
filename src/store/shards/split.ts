/** How a list of requests is shared out among several shards, each of which has some of its subjects. */
import type { Limit, StoreReply, StoreRequest, StoreState } from '../store.ts'

/** A limit, and where it stands in the list. */
export interface Cell {
  request: number
  index: number
  limit: Limit
}

/** One request to a shard, by its index in what that shard is asked, and the cells that it answers. */
interface Ask {
  at: number
  cells: Cell[]
}

/** What one shard has to do with a group. */
export interface Fragment {
  shard: number
  asks: Ask[]
  /** The limits here of the request that the group is about; nothing where there are only followers. */
  lead: Ask | undefined
  /** How all limits here stand without the charge; where more than one shard decides. */
  before: Ask | undefined
}

/** A request and those that follow it. */
export interface Group {
  fragments: Fragment[]
  /** Whether it charges. */
  isTake: boolean
  /** Whether its limits pass together, and several shards have to agree on that. */
  together: boolean
}

/** What each shard is asked of a list, and whose its answers are. */
export interface Plan {
  /** Nothing where the list goes to one shard as it is. */
  groups: Group[] | undefined
  /** By shard; nothing where it has no part in it. */
  asked: StoreRequest[][]
}

/** Shares a list out among the shards of its subjects. A follower has one limit, and a limit stands once in a request and its followers. */
export function split(list: StoreRequest[], shardOf: (subject: string) => number): Plan {
  const asked: StoreRequest[][] = []
  const put = (shard: number, request: StoreRequest, cells: Cell[]): Ask => {
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
    // A follow that stands first follows nothing, and is decided like a take.
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

/** The indexes of each request that is no follower, or stands before all that are none, and of the followers after it. */
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

const statesOf = ({ at }: Ask, { states }: StoreReply): StoreState[] => states[at]!

/** Whether a shard lets a request pass, as far as it goes. */
export const admits = ({ lead }: Pick<Fragment, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The limits that a shard has charged of a request that it lets pass. */
export const chargedIn = ({ asks }: Pick<Fragment, 'asks'>, reply: StoreReply): Limit[] =>
  asks
    .filter((ask) => statesOf(ask, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ limit }) => limit))
    .filter(({ cost }) => cost > 0)

/** Every cell of a fragment, with what the shard said of it. */
export function* statesBy(asks: Ask[], reply: StoreReply): Generator<[Cell, StoreState]> {
  for (const ask of asks) {
    const states = statesOf(ask, reply)
    for (const [index, cell] of ask.cells.entries()) yield [cell, states[index]!]
  }
}
