const MAX_SLOTS = 500
const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Lengths of slots. Each is a multiple of the one before; after the last one a slot doubles. */
const lengths = [
  ...[1, 2, 10, 30].map((seconds) => seconds * SECOND),
  ...[1, 5, 10, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 6, 12, 24].map((hours) => hours * HOUR),
]

/** Divides the time of a log into at most 500 slots. They get longer when there are too many. */
export class Slots {
  length = lengths[0]!
  /** The begin of the first slot. */
  from = 0
  /** The number of slots up to the last time. */
  used = 0
  readonly #series: Float64Array[] = []

  /** A new list with a number for each slot. Numbers move within it when the slots get longer. */
  series(): Float64Array {
    const made = new Float64Array(MAX_SLOTS)
    this.#series.push(made)
    return made
  }

  /** The slot of a time. Times increase. */
  at(time: number): number {
    if (this.used === 0) this.from = time - (time % this.length)
    let slot = this.#slotOf(time)
    while (slot >= MAX_SLOTS) {
      this.#lengthen()
      slot = this.#slotOf(time)
    }
    if (slot >= this.used) this.used = slot + 1
    return slot
  }

  #slotOf(time: number): number {
    return Math.floor((time - this.from) / this.length)
  }

  #lengthen(): void {
    const length = lengths.find((one) => one > this.length) ?? this.length * 2
    const from = this.from - (this.from % length)
    const moved = (slot: number) => Math.floor((this.from + slot * this.length - from) / length)
    for (const series of this.#series) {
      for (let slot = 0; slot < this.used; slot += 1) {
        const count = series[slot]!
        series[slot] = 0
        series[moved(slot)]! += count
      }
    }
    this.used = moved(this.used - 1) + 1
    this.length = length
    this.from = from
  }
}
