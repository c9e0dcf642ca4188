/**
 * A store whose subjects are in several parts, such as Durable Objects or the slots of a Redis Cluster. A call reaches one part. So a list of
 * requests is split into one list for each part, and the limits of each answer are found again.
 */
import { StoreError } from '../../core/base/errors.ts'
import {
  type Correction,
  type Limit,
  type OnRefund,
  REFUND_MS,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreRequest,
  type StoreResult,
  type StoreState,
  storeBy,
} from '../../core/connection/store.ts'
import { inGroups, type PartName } from './groups.ts'

/** A limit, with its position in the original list. */
interface Cell {
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
interface Fragment {
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
interface SplitGroup {
  fragments: Fragment[]
  /** True for a take that several parts must admit. */
  isSplitTake: boolean
}

interface Plan {
  groups: SplitGroup[] | undefined
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
    for (const request of [first!, ...follows]) {
      for (const [index, limit] of list[request]!.limits.entries()) {
        const part = partOf(limit.subject)
        byPart.set(part, [...(byPart.get(part) ?? []), { request, index, limit }])
      }
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
    return { fragments, isSplitTake }
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

const statesOf = ({ at }: PartRequest, { states }: StoreReply): StoreState[] => states[at]!

export const admits = ({ lead }: Pick<Fragment, 'lead'>, reply: StoreReply): boolean =>
  lead === undefined || statesOf(lead, reply).every(({ allowed }) => allowed)

/** The charges of a part that can be refunded. Valid only if the part `admits` the request. */
export const chargedIn = ({ requests }: Pick<Fragment, 'requests'>, reply: StoreReply): Limit[] =>
  requests
    .filter((request) => statesOf(request, reply).every(({ allowed }) => allowed))
    .flatMap(({ cells }) => cells.map(({ limit }) => limit).filter(({ cost }) => cost > 0))

export const statesBy = (requests: PartRequest[], reply: StoreReply) =>
  requests.flatMap((request) =>
    request.cells.map((cell, at): [Cell, StoreState] => [cell, statesOf(request, reply)[at]!]),
  )

/** Never rejects: each list gets its reply or its error. @param isOne true if the parts share one list, so that each has one list */
export type DecideParts = (
  parts: { part: PartName; lists: StoreRequest[][] }[],
  options: StoreOptions,
  isOne: boolean,
) => Promise<StoreResult[][]>

/**
 * A store that splits lists by part. A list with all its limits in one part is one call to that part.
 *
 * Otherwise all parts are called at the same time. Each part charges all of its limits of a request, or none. If one part refuses, the
 * charges of the other parts are refunded in the background. So no limit is ever exceeded, but until the refund a quota looks smaller
 * than it is. The same calls peek at the state before the charge, because that is the answer if another part refuses.
 */
export function createSplitStore(
  partOf: (subject: string) => PartName,
  decideParts: DecideParts,
  onRefund: OnRefund = () => {},
): Store {
  function decideAll(
    lists: StoreRequest[][],
    options: StoreOptions,
    isOne: boolean,
  ): Promise<StoreResult[]> {
    const plans = lists.map((list) => split(list, partOf))
    const decided = callAll(plans, options, isOne).then((replies) =>
      plans.map(({ groups }, index) => {
        const all = replies[index]!
        return groups ? merged(lists[index]!, groups, all, options) : all[0]!
      }),
    )
    // Finish the refunds after the client has disconnected. Otherwise a disconnect would keep charges of a refused request.
    if (plans.some(({ groups }) => groups)) options.waitUntil?.(decided)
    return decided
  }

  /** Calls each part once. Returns the replies by list, in the order of the parts of its plan. */
  async function callAll(
    plans: Plan[],
    options: StoreOptions,
    isOne: boolean,
  ): Promise<StoreResult[][]> {
    const sent = plans.flatMap(({ parts, partLists }) =>
      parts.map((part, place) => ({ part, list: partLists[place]! })),
    )
    const answers = await inGroups(
      sent,
      ({ part }) => part,
      async (groups) => {
        const calls = groups.map(([part, all]) => ({ part, lists: all.map(({ list }) => list) }))
        return (await decideParts(calls, options, isOne)).flat()
      },
    )
    return plans.map(({ parts }) => answers.splice(0, parts.length))
  }

  /** Merges the replies of the parts to one list, and refunds the charges of refused requests. */
  function merged(
    list: StoreRequest[],
    groups: SplitGroup[],
    replies: StoreResult[],
    options: StoreOptions,
  ): StoreResult {
    const answers = replies.filter((reply): reply is StoreReply => !(reply instanceof StoreError))
    const errors = replies.filter((reply) => reply instanceof StoreError)
    const conflict = errors.find(({ code }) => code === 'idempotency-conflict')
    const failure = conflict ?? errors[0]
    const states = list.map((): StoreState[] => [])

    for (const { fragments, isSplitTake } of groups) {
      const answered = fragments.flatMap((fragment) => {
        const reply = replies[fragment.place]!
        return reply instanceof StoreError ? [] : [{ fragment, reply }]
      })
      const passes = !failure && answered.every(({ fragment, reply }) => admits(fragment, reply))
      // With an idempotency key, keep the charges if another part fails: a repeated call finds them. Refund them if a part refuses.
      const keeps =
        options.idempotency &&
        !conflict &&
        answered.every(({ fragment, reply }) => admits(fragment, reply) || hasFallenBack(reply))
      for (const { fragment, reply } of answered) {
        const charged = isSplitTake && admits(fragment, reply)
        const requests = charged && !passes ? [fragment.before!] : fragment.requests
        for (const [cell, state] of statesBy(requests, reply)) {
          states[cell.request]![cell.index] = passes
            ? { decidedAt: reply.decidedAt, ...state }
            : state
        }
        if (charged && !passes && !(keeps && !hasFallenBack(reply))) {
          refund(fragment, reply, options)
        }
      }
    }
    if (failure) return failure
    const known = answers.filter((reply) => !hasFallenBack(reply))
    return {
      decidedAt: Math.min(...answers.map(({ decidedAt }) => decidedAt)),
      states,
      ...(known.length > 0 && known.every(({ replayed }) => replayed) && { replayed: true }),
    }
  }

  /** Refunds the charges of a part in the background. A replay has charged nothing. */
  function refund(
    { part, ...fragment }: Fragment,
    reply: StoreReply,
    { now, waitUntil }: StoreOptions,
  ) {
    const limits = reply.replayed ? [] : chargedIn(fragment, reply)
    if (limits.length === 0) return
    const states = new Map(
      statesBy(fragment.requests, reply).map(([cell, state]) => [cell.limit, state]),
    )
    const requests = limits.map((limit): Correction => {
      const { decidedAt = reply.decidedAt, fallback } = states.get(limit)!
      return { mode: 'refund', limits: [limit], decidedAt, ...(fallback && { fallback }) }
    })
    const parts = [{ part, lists: [requests] }]
    const options: StoreOptions = { deadlineMs: REFUND_MS, now, waitUntil }
    const done = decideParts(parts, options, true).then(([replies]) => {
      const error = replies!.find((reply) => reply instanceof StoreError)
      onRefund([...new Set(limits.map(({ subject }) => subject))], error)
    })
    waitUntil?.(done)
  }

  return storeBy((lists, options) => decideAll(lists, options, lists.length === 1))
}

/** True if `onStoreError` has answered in place of a part. */
const hasFallenBack = ({ states }: StoreReply) => states[0]![0]!.fallback !== undefined
