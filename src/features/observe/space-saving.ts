import type { Offender } from './report.ts'

const MAX_ENTRIES = 64

/**
 * Finds the most frequent of many values in constant memory (Metwally, Agrawal, El Abbadi: Space-Saving, ICDT 2005). A new value replaces
 * the entry with the lowest count and inherits that count as its error. So a count is never too low, and at most `error` too high. The
 * error is at most 1/64 of all values, and every value that is more frequent than that has an entry.
 */
export class SpaceSaving {
  readonly #entries = new Map<string, { refusals: number; error: number }>()

  add(subject: string): void {
    const known = this.#entries.get(subject)
    if (known) known.refusals += 1
    else if (this.#entries.size < MAX_ENTRIES) this.#entries.set(subject, { refusals: 1, error: 0 })
    else this.#replaceLowest(subject)
  }

  #replaceLowest(subject: string): void {
    let lowest: string | undefined
    let error = Number.POSITIVE_INFINITY
    for (const [name, { refusals }] of this.#entries) {
      if (refusals < error) [lowest, error] = [name, refusals]
    }
    this.#entries.delete(lowest!)
    this.#entries.set(subject, { refusals: error + 1, error })
  }

  /** In no order. */
  list(): Omit<Offender, 'policy'>[] {
    return [...this.#entries].map(([subject, counts]) => ({ subject, ...counts }))
  }
}
