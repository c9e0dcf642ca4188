/** Splits a list of requests into one list for each part of the store, and finds the limits of each answer again. */
import type { Limit, StoreReply, StoreRequest, StoreState } from '../../core/connection/store.ts'

/** Names a part of the store. */
export type PartName = number | string

/** The subject of a list whose limits all have one part. */
export const subjectOf = ([request]: StoreRequest[]): string => request!.limits[0]!.subject

/**
 * Answers items in groups.
 * @param answer returns the answers of all groups, one group after the other
 * @returns the answers in the order of the items
 */
export async function inGroups<Item, Answer>(
  items: Item[],
  groupOf: (item: Item) => PartName,
  answer: (groups: [PartName, Item[]][]) => Promise<Answer[]>,
): Promise<Answer[]> {
  const groups = new Map<PartName, number[]>()
  for (const [index, item] of items.entries()) {
    const group = groupOf(item)
    groups.set(group, [...(groups.get(group) ?? []), index])
  }
  const answers = await answer(
    [...groups].map(([group, indexes]) => [group, indexes.map((index) => items[index]!)]),
  )
  const inOrder: Answer[] = []
  for (const [at, index] of [...groups.values()].flat().entries()) inOrder[index] = answers[at]!
  return inOrder
}

/** A limit, with its position in the original list. */
export interface Cell {
  request: number
  index: number
  limit: Limit
}

/** A request to a part: its index in the list of that part, and its limits. */
interface PartRequest {
  at: number
  cells: Cell[]
}

/** The requests of one group to one part. */
export interface Fragment {
  part: PartName
  /** The index of the part in the plan. */
  place: number
  /** The requests that decide, without `before`. */
  requests: PartRequest[]
  /** The first request of the group. Undefined if this part has only limits of its follows. */
  lead: PartRequest | undefined
  /** A peek at all limits of this part before the charge. Set if several parts decide. */
  before: PartRequest | undefined
}

/** A request and its follows. */
export interface SplitGroup {
  fragments: Fragment[]
  isTake: boolean
  /** True for a take that several parts must admit. */
  isSplitTake: boolean
}

export interface Plan {
  groups: SplitGroup[] | undefined
  /** The parts of the list. */
  parts: PartName[]
  partLists: StoreRequest[][]
}

/** Requires that a follow has one limit, and that a limit occurs only once in a request and its follows. */
export function split(list: StoreRequest[], partOf: (subject: string) => PartName): Plan {
  const parts = [
    ...new Set(list.flatMap(({ limits }) => limits.map(({ subject }) => partOf(subject)))),
  ]
  if (parts.length === 1) return { parts, partLists: [list], groups: undefined }
  const partLists = parts.map((): StoreRequest[] => [])
  const add = (place: number, request: StoreRequest, cells: Cell[]): PartRequest => {
    const limits = cells.map(({ limit }) => limit)
    return { at: partLists[place]!.push({ ...request, limits }) - 1, cells }
  }
  const groups = groupIndexes(list).map(([first, ...follows]): SplitGroup => {
    const byPart = new Map<PartName, Cell[]>()
    for (const cell of [first!, ...follows].flatMap((request) => cellsOf(list, request))) {
      const part = partOf(cell.limit.subject)
      byPart.set(part, [...(byPart.get(part) ?? []), cell])
    }
    const request = list[first!]!
    // A follow without a request before it is a take.
    const leading: StoreRequest = request.mode === 'follow' ? { ...request, mode: 'take' } : request
    const isTake = leading.mode === 'take'
    const isSplitTake = isTake && byPart.size > 1
    const fragments = [...byPart].map(([part, cells]): Fragment => {
      const place = parts.indexOf(part)
      const before = isSplitTake ? add(place, peekOf(leading), cells) : undefined
      const leadCells = cells.filter(({ request }) => request === first)
      const lead = leadCells.length > 0 ? add(place, leading, leadCells) : undefined
      // Another part decides the first request. Its result is unknown here, so charge the follow now and refund it if refused.
      const mode = lead ? 'follow' : isTake ? 'take' : 'peek'
      const requests = follows.flatMap((follow) => {
        const followCells = cells.filter(({ request }) => request === follow)
        return followCells.length > 0 ? add(place, { mode, limits: [] }, followCells) : []
      })
      return { part, place, lead, before, requests: lead ? [lead, ...requests] : requests }
    })
    return { fragments, isTake, isSplitTake }
  })
  return { parts, partLists, groups }
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

const statesOf = ({ at }: PartRequest, { states }: StoreReply): StoreState[] => states[at]!

/** True if a part admits its limits of a request. */
export const admits = ({ lead }: Pick<Fragment, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The charges of a part that can be refunded. Valid only if the part `admits` the request. */
export const chargedIn = ({ requests }: Pick<Fragment, 'requests'>, reply: StoreReply): Limit[] =>
  requests
    .filter((request) => statesOf(request, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ limit }) => limit).filter(({ cost }) => cost > 0))

/** Each limit of these requests with its state. */
export function* statesBy(
  requests: PartRequest[],
  reply: StoreReply,
): Generator<[Cell, StoreState]> {
  for (const request of requests) {
    const states = statesOf(request, reply)
    for (const [index, cell] of request.cells.entries()) yield [cell, states[index]!]
  }
}
