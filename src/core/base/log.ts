import { isWithin } from './clock.ts'

const INTERVAL_MS = 10_000

export type Log = (event: string, code: string, message: string) => void

/**
 * Creates a logger that writes JSON lines: for one event and code at most one in ten seconds, so that an outage does not flood the log. The
 * next line counts those left out in `suppressed`. Never pass keys, tokens or scripts.
 */
export function createLog(): Log {
  const last = new Map<string, { at: number; suppressed: number }>()
  return (event, code, message) => {
    const id = `${event} ${code}`
    const now = Date.now()
    const before = last.get(id)
    if (before && isWithin(now, before.at, before.at + INTERVAL_MS)) {
      before.suppressed += 1
      return
    }
    last.set(id, { at: now, suppressed: 0 })
    const suppressed = before?.suppressed ?? 0
    console.error(JSON.stringify({ event, code, message, suppressed }))
  }
}
