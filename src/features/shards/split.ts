/** Splits a list of requests into one list for each shard, and finds the limits of each answer again. */
import type { Limit, StoreReply, StoreRequest, StoreState } from '../../core/connection/store.ts'

/** A limit, with its position in the original list. */
export interface Cell {
  request: number
  index: number
  limit: Limit
}

/** A request to a shard: its index in the list of that shard, and its limits. */
interface ShardRequest {
  at: number
  cells: Cell[]
}

/** The requests of one group to one shard. */
export interface Fragment {
  shard: number
  /** The index of the shard in the plan. */
  place: number
  /** The requests that decide, without `before`. */
  requests: ShardRequest[]
  /** The first request of the group. Undefined if this shard has only limits of its follows. */
  lead: ShardRequest | undefined
  /** A peek at all limits on this shard before the charge. Set if several shards decide. */
  before: ShardRequest | undefined
}

/** A request and its follows. */
export interface Group {
  fragments: Fragment[]
  isTake: boolean
  /** True for a take that several shards must admit. */
  isSplitTake: boolean
}

/** How a list is sent to the shards. */
export interface Plan {
  /** Undefined if the whole list goes to one shard. */
  groups: Group[] | undefined
  /** The shards of the list. */
  shards: number[]
  /** The list for each of these shards. */
  shardLists: StoreRequest[][]
}

/** Requires that a follow has one limit, and that a limit occurs only once in a request and its follows. */
export function split(list: StoreRequest[], shardOf: (subject: string) => number): Plan {
  const shards = [
    ...new Set(list.flatMap(({ limits }) => limits.map(({ subject }) => shardOf(subject)))),
  ]
  if (shards.length === 1) return { shards, shardLists: [list], groups: undefined }
  const shardLists = shards.map((): StoreRequest[] => [])
  const add = (place: number, request: StoreRequest, cells: Cell[]): ShardRequest => {
    const limits = cells.map(({ limit }) => limit)
    return { at: shardLists[place]!.push({ ...request, limits }) - 1, cells }
  }
  const groups = groupIndexes(list).map(([first, ...follows]): Group => {
    const byShard = new Map<number, Cell[]>()
    for (const cell of [first!, ...follows].flatMap((request) => cellsOf(list, request))) {
      const shard = shardOf(cell.limit.subject)
      byShard.set(shard, [...(byShard.get(shard) ?? []), cell])
    }
    const request = list[first!]!
    // A follow without a request before it is a take.
    const leading: StoreRequest = request.mode === 'follow' ? { ...request, mode: 'take' } : request
    const isTake = leading.mode === 'take'
    const isSplitTake = isTake && byShard.size > 1
    const fragments = [...byShard].map(([shard, cells]): Fragment => {
      const place = shards.indexOf(shard)
      const before = isSplitTake ? add(place, peekOf(leading), cells) : undefined
      const leadCells = cells.filter(({ request }) => request === first)
      const lead = leadCells.length > 0 ? add(place, leading, leadCells) : undefined
      // Another shard decides the first request. Its result is unknown here, so charge the follow now and refund it if refused.
      const mode = lead ? 'follow' : isTake ? 'take' : 'peek'
      const requests = follows.flatMap((follow) => {
        const followCells = cells.filter(({ request }) => request === follow)
        return followCells.length > 0 ? add(place, { mode, limits: [] }, followCells) : []
      })
      return { shard, place, lead, before, requests: lead ? [lead, ...requests] : requests }
    })
    return { fragments, isTake, isSplitTake }
  })
  return { shards, shardLists, groups }
}

/** A peek at the same place in the lines. */
const peekOf = (request: StoreRequest): StoreRequest => ({
  mode: 'peek',
  limits: [],
  ...('ticket' in request && request.ticket && { ticket: request.ticket }),
})

/** Groups the index of each request with the indexes of its follows. Each leading follow is a group by itself. */
function groupIndexes(list: StoreRequest[]): number[][] {
  const groups: number[][] = []
  let hasLead = false
  list.forEach(({ mode }, index) => {
    if (mode === 'follow' && hasLead) groups.at(-1)!.push(index)
    else groups.push([index])
    hasLead ||= mode !== 'follow'
  })
  return groups
}

const cellsOf = (list: StoreRequest[], request: number): Cell[] =>
  list[request]!.limits.map((limit, index) => ({ request, index, limit }))

const statesOf = ({ at }: ShardRequest, { states }: StoreReply): StoreState[] => states[at]!

/** True if a shard admits its limits of a request. */
export const admits = ({ lead }: Pick<Fragment, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The charges of a shard that can be refunded. Valid only if the shard `admits` the request. */
export const chargedIn = ({ requests }: Pick<Fragment, 'requests'>, reply: StoreReply): Limit[] =>
  requests
    .filter((request) => statesOf(request, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ limit }) => limit).filter(({ cost }) => cost > 0))

/** Each limit of these requests with its state. */
export function* statesBy(
  requests: ShardRequest[],
  reply: StoreReply,
): Generator<[Cell, StoreState]> {
  for (const request of requests) {
    const states = statesOf(request, reply)
    for (const [index, cell] of request.cells.entries()) yield [cell, states[index]!]
  }
}
