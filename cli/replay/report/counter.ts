import { Pair } from './pair.ts'
import type { Slots } from './slots.ts'
import type { Minute, RefusalCounts } from './types.ts'

const MINUTE_MS = 60_000

/** Counts the requests and refusals of one policy, or of all. */
export class Counter {
  requests = 0
  readonly refused = new Pair()
  /** Clients with a refusal. */
  readonly clients = new Pair()
  #firstRefusal: number | null = null
  #minute = Number.NEGATIVE_INFINITY
  #inMinute = new Pair()
  #worst: Minute | null = null
  readonly #slots: Slots
  readonly #overTime: { requests: Float64Array; spread: Float64Array; burst: Float64Array }

  constructor(slots: Slots) {
    this.#slots = slots
    this.#overTime = { requests: slots.series(), spread: slots.series(), burst: slots.series() }
  }

  count(slot: number): void {
    this.requests += 1
    this.#overTime.requests[slot]! += 1
  }

  refuse(time: number, slot: number, inSpread: boolean, inBurst: boolean): void {
    this.#firstRefusal ??= time
    if (time >= this.#minute + MINUTE_MS) {
      this.#worst = this.#worstMinute()
      this.#minute = time - (time % MINUTE_MS)
      this.#inMinute = new Pair()
    }
    this.#inMinute.add(inSpread, inBurst)
    this.refused.add(inSpread, inBurst)
    if (inSpread) this.#overTime.spread[slot]! += 1
    if (inBurst) this.#overTime.burst[slot]! += 1
  }

  #worstMinute(): Minute | null {
    const refused = this.#inMinute.bounds()
    return refused.high > (this.#worst?.refused.high ?? 0)
      ? { time: this.#minute, refused }
      : this.#worst
  }

  report(): RefusalCounts {
    const { low, high } = this.refused
    const { requests, spread, burst } = this.#overTime
    const used = (series: Float64Array) => [...series.subarray(0, this.#slots.used)]
    const ofSlots = (pick: (...counts: number[]) => number) =>
      used(spread).map((count, slot) => pick(count, burst[slot]!))
    return {
      requests: this.requests,
      refused: { low, high },
      share: { low: low / (this.requests || 1), high: high / (this.requests || 1) },
      clients: this.clients.bounds(),
      firstRefusal: this.#firstRefusal,
      worstMinute: this.#worstMinute(),
      overTime: { requests: used(requests), low: ofSlots(Math.min), high: ofSlots(Math.max) },
    }
  }
}
