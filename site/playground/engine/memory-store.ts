/** The store of the playground: the state machine of `sluice/durable-objects` in memory. */
import type { OwnStore, StoreClient } from '../../../src/core/base/commands.ts'
import type { Limit, Store, StoreReply, StoreRequest } from '../../../src/core/connection/store.ts'
import { decideList } from '../../../src/stores/durable-objects/decide.ts'
import { type Bill, billed, commandsOf, nameOf } from './bill.ts'
import { memoryParts } from './memory-parts.ts'

/** Names the states of a limit by its subject too. One record then holds all subjects, and a request of several is charged at once, as in Redis. */
function inOneRecord(limit: Limit): Limit {
  const named = <T extends { tag: string }>(one: T): T => ({
    ...one,
    tag: nameOf(limit.subject, one.tag),
  })
  const { terms, penalty } = limit
  return { ...limit, terms: named(terms), ...(penalty && { penalty: named(penalty) }) }
}

/**
 * Makes the field `store` of a configuration.
 * @param bill counts the calls and the commands that Upstash would bill for them
 * @param sendsTime true with `clock: 'edge'`
 */
export function memoryStore(bill: Bill, sendsTime: boolean): StoreClient {
  const parts = billed(memoryParts(), bill)

  function answer(lists: StoreRequest[][]): StoreReply[] {
    const now = Date.now()
    const before = parts.record
    const replies = lists.map((list): StoreReply => {
      const own = list.map((request) => ({ ...request, limits: request.limits.map(inOneRecord) }))
      return { decidedAt: now, states: decideList(parts, own, now) }
    })
    // Looks of the page itself are not part of the bill.
    const requests = lists.flat()
    if (requests.some(({ mode }) => mode !== 'peek')) {
      bill.calls += 1
      bill.commands += commandsOf(requests, before, parts.record, now, sendsTime)
    }
    return replies
  }

  const store: Store = {
    decide: async (list) => answer([list])[0]!,
    decideEach: async (lists) => answer(lists),
  }
  const own: OwnStore<Store> = {
    binding: 'PLAYGROUND',
    batching: false,
    problems: () => [],
    check: () => {},
    create: () => store,
    spread: (only) => only,
  }
  return {
    own: own as OwnStore,
    connect() {
      throw new Error('The playground has no database.')
    },
  }
}
