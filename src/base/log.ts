const INTERVAL_MS = 10_000

/** @param store which database, where there are several */
export type Log = (event: string, code: string, message: string, store?: string) => void

/**
 * Writes one structured line for an event, and then none for the same event, code and database for ten seconds, with the number
 * left out in the next: an outage must not flood the log. Fields never hold keys, tokens or scripts.
 */
export function createLog(): Log {
  const last = new Map<string, { at: number; suppressed: number }>()
  return (event, code, message, store) => {
    const id = `${event} ${code} ${store}`
    const now = Date.now()
    const before = last.get(id)
    if (before && now - before.at < INTERVAL_MS) {
      before.suppressed += 1
      return
    }
    last.set(id, { at: now, suppressed: 0 })
    const suppressed = before?.suppressed ?? 0
    console.error(JSON.stringify({ event, code, store, message, suppressed }))
  }
}
