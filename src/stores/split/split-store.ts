/** A store whose subjects are in several parts, such as Durable Objects or the slots of a Redis Cluster. A call reaches one part. */
import { StoreError } from '../../core/base/errors.ts'
import {
  type Correction,
  type OnRefund,
  REFUND_MS,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreRequest,
  type StoreResult,
  type StoreState,
} from '../../core/connection/store.ts'
import {
  admits,
  chargedIn,
  type Fragment,
  inGroups,
  type PartName,
  type Plan,
  type SplitGroup,
  split,
  statesBy,
} from './split.ts'

/** Lists of requests for one part. */
export interface PartLists {
  part: PartName
  lists: StoreRequest[][]
}

/**
 * Decides lists in several parts at the same time. Never rejects: each list gets its reply or its error.
 * @param isOne true if the parts share one list, so that each has one list
 */
export type DecideParts = (
  parts: PartLists[],
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
      [...statesBy(fragment.requests, reply)].map(([cell, state]) => [cell.limit, state]),
    )
    const requests = limits.map((limit): Correction => {
      const { decidedAt = reply.decidedAt, fallback } = states.get(limit)!
      return { mode: 'refund', limits: [limit], decidedAt, ...(fallback && { fallback }) }
    })
    const parts = [{ part, lists: [requests] }]
    const options: StoreOptions = { deadlineMs: REFUND_MS }
    if (now !== undefined) options.now = now
    if (waitUntil) options.waitUntil = waitUntil
    const done = decideParts(parts, options, true).then(([replies]) => {
      const error = replies!.find((reply) => reply instanceof StoreError)
      onRefund([...new Set(limits.map(({ subject }) => subject))], error)
    })
    waitUntil?.(done)
  }

  return {
    async decide(list, options = {}) {
      const [reply] = await decideAll([list], options, true)
      if (reply instanceof StoreError) throw reply
      return reply!
    },
    decideEach: (lists, options = {}) => decideAll(lists, options, false),
  }
}

/** True if `onStoreError` has answered in place of a part. */
const hasFallenBack = ({ states }: StoreReply) => states[0]![0]!.fallback !== undefined
