/** The Durable Object of a subject whose requests may wait. */
import type { StoreReply, StoreRequest } from '../../core/connection/store.ts'
import type { Parts } from '../../stores/durable-objects/record.ts'
import { SluiceSubject } from '../../stores/durable-objects/subject.ts'
import { decideWaits } from './object.ts'
import { mayWait } from './waits.ts'

/**
 * A `SluiceSubject` that also gives places, for `turns()` with `store: durableObjects()`. Export it in place of `SluiceSubject`. That of
 * `sluice/outbound` does the same.
 * @example
 * export { WaitSubject as SluiceSubject } from 'sluice/turns'
 */
export class WaitSubject extends SluiceSubject {
  protected override decideList(parts: Parts, list: StoreRequest[], now: number): StoreReply {
    if (!list.some(mayWait)) return super.decideList(parts, list, now)
    const reply: StoreReply = { decidedAt: now, states: decideWaits(parts, list, now) }
    return Object.assign(reply, { hasPlaces: true })
  }
}
