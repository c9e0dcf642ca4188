/** The Durable Object of a subject whose requests have turns. */
import type { StoreReply, StoreRequest } from '../../core/connection/store.ts'
import type { Parts } from '../../stores/durable-objects/record.ts'
import { SluiceSubject } from '../../stores/durable-objects/subject.ts'
import type { TurnRequest } from './stores.ts'
import { turnOf } from './turns.ts'

/**
 * A `SluiceSubject` that also gives turns, for `outbound()` with `store: durableObjects()`. Export it in place of `SluiceSubject`.
 * @example
 * export { TurnSubject as SluiceSubject } from 'sluice/outbound'
 */
export class TurnSubject extends SluiceSubject {
  protected override decideList(parts: Parts, list: StoreRequest[], now: number): StoreReply {
    const [request] = list as Partial<TurnRequest>[]
    if (!request?.turn) return super.decideList(parts, list, now)
    const { line, ...ask } = request.turn
    const turn = turnOf(parts, { ...ask, limits: request.limits! } as never, line, now)
    const reply = super.decideList(parts, [{ mode: 'peek', limits: request.limits! }], now)
    return Object.assign(reply, { turn })
  }
}
