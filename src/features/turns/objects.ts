/** Requests that may wait, on Durable Objects. */
import { StoreError } from '../../core/base/errors.ts'
import type { Store, StoreReply, StoreRequest } from '../../core/connection/store.ts'
import { saying } from '../../stores/durable-objects/objects.ts'
import type { WaitingRoom } from './room.ts'
import { mayWait, waits } from './waits.ts'

/** A store whose requests do not wait while the isolate has no room. */
export function waitingObjects(store: Store, room: WaitingRoom): Store {
  const prepared = (list: StoreRequest[]) => {
    if (!list.some(mayWait) || !room.isFull()) return list
    const atOnce = (request: StoreRequest): StoreRequest => ({
      ...request,
      limits: request.limits.map((limit) =>
        waits(limit) ? { ...limit, terms: { ...limit.terms, wait: 0 } } : limit,
      ),
    })
    return list.map((request) => (mayWait(request) ? atOnce(request) : request))
  }
  const checked = (list: StoreRequest[], reply: StoreReply): StoreReply => {
    if (!list.some(mayWait) || 'hasPlaces' in reply) return reply
    throw saying('not-configured', 'export WaitSubject of sluice/turns as SluiceSubject')
  }
  return {
    decide: async (list, options) => checked(list, await store.decide(prepared(list), options)),
    async decideEach(lists, options) {
      const replies = await store.decideEach(lists.map(prepared), options)
      return replies.map((reply, index) => {
        try {
          return reply instanceof StoreError ? reply : checked(lists[index]!, reply)
        } catch (error) {
          return error as StoreError
        }
      })
    },
  }
}
