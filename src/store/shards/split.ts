/** How a list of requests is shared out among several places, each of which has some of its subjects. */
import type { LimitRow, RowState, StoreReply, StoreRequest } from '../store.ts'

/** A row, and where it stands in the list. */
interface Cell {
  request: number
  index: number
  row: LimitRow
}

/** One request to a place, by its index in what that place is asked, and the cells that it answers. */
interface Ask {
  at: number
  cells: Cell[]
}

/** What one place has to do with a group. */
export interface Share {
  place: number
  asks: Ask[]
  /** The rows here of the request that the group is about; nothing where there are only shadows. */
  lead: Ask | undefined
  /** How all rows here stand without the charge; where more than one place decides. */
  before: Ask | undefined
}

/** A request and the shadows that follow it. */
export interface Group {
  shares: Share[]
  /** Whether its rows pass together, and several places have to agree on that. */
  together: boolean
}

/** What each place is asked of a list, and whose its answers are. */
export interface Plan {
  /** Nothing where the list goes to one place as it is. */
  groups: Group[] | undefined
  /** By place; nothing where it has no part in it. */
  asked: StoreRequest[][]
}

/** Shares a list out among the places of its subjects. A shadow has one row, and a limit stands once in a request and its shadows. */
export function shareOut(list: StoreRequest[], placeOf: (subject: string) => number): Plan {
  const asked: StoreRequest[][] = []
  const put = (place: number, request: Omit<StoreRequest, 'rows'>, cells: Cell[]): Ask => {
    asked[place] ??= []
    const at = asked[place].push({ ...request, rows: cells.map(({ row }) => row) }) - 1
    return { at, cells }
  }
  const groups = membersOf(list).map(([first, ...shadows]): Group => {
    const byPlace = Map.groupBy(
      [first!, ...shadows].flatMap((one) => cellsOf(list, one)),
      ({ row }) => placeOf(row.subject),
    )
    const { mode, ...rest } = list[first!]!
    const leading = mode === 'shadow' ? 'take' : mode // it follows nobody
    const together = leading === 'take' && byPlace.size > 1
    const shares = [...byPlace].map(([place, cells]): Share => {
      const before = together ? put(place, { mode: 'peek' }, cells) : undefined
      const leads = cells.filter(({ request }) => request === first)
      const lead = leads.length > 0 ? put(place, { ...rest, mode: leading }, leads) : undefined
      // Of a request that is decided elsewhere nobody knows here yet: taken, it can be given back.
      const following = lead ? 'shadow' : leading === 'take' ? 'take' : 'peek'
      const asks = shadows.flatMap((shadow) => {
        const own = cells.filter(({ request }) => request === shadow)
        return own.length > 0 ? put(place, { mode: following }, own) : []
      })
      return { place, lead, before, asks: lead ? [lead, ...asks] : asks }
    })
    return { shares, together }
  })
  return { groups, asked }
}

/** The indexes of each request that is no shadow, or stands before all that are none, and of the shadows after it. */
function membersOf(list: StoreRequest[]): number[][] {
  const groups: number[][] = []
  let follows = false
  list.forEach(({ mode }, index) => {
    if (mode === 'shadow' && follows) groups.at(-1)!.push(index)
    else groups.push([index])
    follows ||= mode !== 'shadow'
  })
  return groups
}

const cellsOf = (list: StoreRequest[], request: number): Cell[] =>
  list[request]!.rows.map((row, index) => ({ request, index, row }))

const statesOf = ({ at }: Ask, { requests }: StoreReply): RowState[] => requests[at]!

/** Whether a place lets a request pass, as far as it goes. */
export const admits = ({ lead }: Pick<Share, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The rows that a place has charged of a request that it lets pass. */
export const chargedIn = ({ asks }: Pick<Share, 'asks'>, reply: StoreReply): LimitRow[] =>
  asks
    .filter((ask) => statesOf(ask, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ row }) => row))
    .filter(({ cost }) => cost > 0)

/** Every cell of a share, with what the place said of it. */
export function* toldOf(asks: Ask[], reply: StoreReply): Generator<[Cell, RowState]> {
  for (const ask of asks) {
    const states = statesOf(ask, reply)
    for (const [index, cell] of ask.cells.entries()) yield [cell, states[index]!]
  }
}
