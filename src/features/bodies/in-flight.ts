import { isWithin } from '../../core/base/clock.ts'

/** Most bytes that an isolate reads at a time. It has 128 MB, and workerd needs over three times the bytes of a body that it passes on. */
const MAX_BYTES = 16 * 1024 * 1024
/** A body is begun only below this, so that those that have begun can end. */
const FULL_BYTES = MAX_BYTES / 2

const all = new Set<BodyInFlight>()
let held = 0

/** Ends old bodies if there are this many bytes. A runtime may have cancelled their requests without running the last statements. */
function hasRoom(bytes: number): boolean {
  if (held > bytes) {
    for (const one of all) if (one.isOld) one.end()
  }
  return held <= bytes
}

export class BodyInFlight {
  size = 0
  readonly #startedAt = Date.now()
  readonly #lifeMs: number

  private constructor(lifeMs: number) {
    this.#lifeMs = lifeMs
    all.add(this)
  }

  /** Begins a body, unless others use the memory. @param lifeMs the time after which it is not read on */
  static begin(lifeMs: number): BodyInFlight | undefined {
    return hasRoom(FULL_BYTES) ? new BodyInFlight(lifeMs) : undefined
  }

  /** Counts bytes that have arrived. Returns false if there is no room for them. */
  add(bytes: number): boolean {
    if (!all.has(this)) return false
    this.size += bytes
    held += bytes
    return hasRoom(MAX_BYTES)
  }

  get isOld(): boolean {
    return !isWithin(Date.now(), this.#startedAt, this.#startedAt + this.#lifeMs)
  }

  end(): void {
    if (all.delete(this)) held -= this.size
  }
}
