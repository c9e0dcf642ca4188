/** A request that stands in lines. */
export interface LineMember {
  /** In the order of arrival. */
  readonly number: number
  readonly names: readonly string[]
  /** When it is known to have gone, ms since the epoch: workerd runs neither the timers nor `finally` of a request whose client has gone. */
  goneAt: number
}

/** A request shows life at least so often, ms. */
const BEAT_MS = 1_000
/** A request whose code may go on does so within this time, ms. */
export const SILENT_MS = 50

/** Requests of one isolate in the order in which they came, in a line for each name. */
export class Lines<M extends LineMember> {
  readonly #lines = new Map<string, M[]>()

  /** Adds a request at its place, unless it is there. */
  join(member: M): void {
    for (const name of member.names) {
      const line = this.#lines.get(name)
      if (!line) this.#lines.set(name, [member])
      else if (!line.includes(member)) {
        const index = line.findLastIndex(({ number }) => number < member.number)
        line.splice(index + 1, 0, member)
      }
    }
  }

  leave(member: M): void {
    for (const name of member.names) {
      const others = this.#lines.get(name)?.filter((one) => one !== member)
      if (others?.length) this.#lines.set(name, others)
      else this.#lines.delete(name)
    }
  }

  /** The requests of a line, in order, without those that were cancelled. */
  of(name: string): readonly M[] {
    const now = Date.now()
    for (const one of this.#lines.get(name) ?? []) if (one.goneAt < now) this.leave(one)
    return this.#lines.get(name) ?? []
  }
}

/** Runs a task at a time, in the code of a request, which shows life until then: late, if others already take the request for cancelled. */
export function atTime(
  member: LineMember,
  until: number,
  task: () => void,
): { cancel: () => void } {
  let timer: ReturnType<typeof setTimeout>
  const beat = () => {
    const now = Date.now()
    // A timer may fire up to one ms early, so the last one runs until the next ms: a sign of life must not come in its place.
    const restMs = Math.max(0, until - now) + 1
    const ms = restMs <= BEAT_MS + 1 ? restMs : BEAT_MS
    member.goneAt = now + ms + SILENT_MS
    timer = setTimeout(() => (Date.now() < Math.min(until, member.goneAt) ? beat() : task()), ms)
  }
  beat()
  return { cancel: () => clearTimeout(timer) }
}
