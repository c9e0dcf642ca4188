const INTERVAL_MS = 10_000

export type Log = (event: string, code: string, message: string) => void

/**
 * Writes one structured line for an event, and then none for the same event and code for ten seconds, with the number
 * left out in the next: an outage must not flood the log. Fields never hold keys, tokens or scripts.
 */
export function createLog(): Log {
  const last = new Map<string, { at: number; suppressed: number }>()
  return (event, code, message) => {
    const id = `${event} ${code}`
    const now = Date.now()
    const before = last.get(id)
    if (before && now - before.at < INTERVAL_MS) {
      before.suppressed += 1
      return
    }
    last.set(id, { at: now, suppressed: 0 })
    console.error(JSON.stringify({ event, code, message, suppressed: before?.suppressed ?? 0 }))
  }
}
