import { Recent } from '../../core/base/recent.ts'

/** Half of the upper bound of the subjects whose cooldowns are known. */
const MAX_SUBJECTS = 1_000
/** By how much two answers may differ that report the same cooldown, ms: each took its own time. */
const JITTER_MS = 100

/** The cooldowns that the calls of this process have heard of, by subject. Calls that wait look here before they are sent. */
export class Cooldowns {
  readonly #ends = new Recent<number>(MAX_SUBJECTS)

  note(subject: string, coolMs: number): void {
    const end = Date.now() + coolMs
    if (coolMs > 0 && end > this.of(subject) + JITTER_MS) this.#ends.set(subject, end)
  }

  /** The end of the last cooldown by the clock of this process, ms since the epoch. 0 if there was none. */
  of(subject: string): number {
    return this.#ends.get(subject) ?? 0
  }
}
