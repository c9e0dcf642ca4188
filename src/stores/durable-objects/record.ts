/** The states of one subject. lua/README.md describes the same states in Redis. */
import type { State } from '../../core/connection/algorithms/index.ts'

/** A state that ends at `end`: from then on it is absent. */
export interface KeptState extends State {
  end: number
}

/** States by tag: those of windows and buckets, bans, and limits of operators. */
export type Record = ReadonlyMap<string, KeptState>

/** The slots of one id. They are taken together and end together. */
export interface Slots {
  id: string
  end: number
  count: number
}

export interface Parts {
  record: Record
  /** The time of each unit of a sliding log, oldest first. */
  log(tag: string): readonly number[]
  /** @param end when the last unit stops to count, ms since the epoch */
  setLog(tag: string, times: readonly number[], end: number): void
  slots(tag: string): readonly Slots[]
  /** @param end when the last slot ends, ms since the epoch */
  setSlots(tag: string, slots: readonly Slots[], end: number): void
}

export function liveState(record: Record, tag: string, now: number): KeptState | undefined {
  const state = record.get(tag)
  return state && state.end > now ? state : undefined
}
