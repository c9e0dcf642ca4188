/** Penalties: bans after refusals. lua/README.md defines them. */
import type { Penalty } from '../../core/connection/store.ts'
import { type KeptState, liveState, type Record } from './record.ts'

const banTag = (tag: string) => `${tag}-ban`

/** Changes of a record by tag: the new state, or undefined to remove it. */
export type Changes = Map<string, KeptState | undefined>

export const ban = ({ tag }: Penalty, lengthMs: number, now: number): Changes =>
  new Map([
    [tag, undefined],
    [banTag(tag), { time: now, end: now + 2 * lengthMs, numbers: [lengthMs] }],
  ])

export const pardon = ({ tag }: Penalty): Changes =>
  new Map([
    [tag, undefined],
    [banTag(tag), undefined],
  ])

/** The last ban, which is remembered for as long as it lasted. A lowered maximum also shortens a running ban. */
function lastBan(record: Record, { tag, maxMs }: Penalty, now: number) {
  const last = liveState(record, banTag(tag), now)
  return last && { began: last.time, length: Math.min(last.numbers[0]!, maxMs) }
}

/** The rest of a ban, ms; 0 without one. */
export function banRest(record: Record, penalty: Penalty, now: number): number {
  const last = lastBan(record, penalty, now)
  return last ? Math.max(0, last.began + last.length - now) : 0
}

/** Counts a refusal of a client that is not banned. The last one starts a ban. */
export function refusalCounted(record: Record, penalty: Penalty, now: number): Changes {
  const { tag, after, withinMs, banMs, maxMs } = penalty
  const counted = liveState(record, tag, now)
  const count = (counted?.numbers[0] ?? 0) + 1
  if (count < after) {
    const { time, end } = counted ?? { time: now, end: now + withinMs }
    return new Map([[tag, { time, end, numbers: [count] }]])
  }
  const last = lastBan(record, penalty, now)
  const isAgain = last && now < last.began + 2 * last.length
  return ban(penalty, Math.min(maxMs, isAgain ? Math.max(banMs, 2 * last.length) : banMs), now)
}
