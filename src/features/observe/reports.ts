/** Sends reports to sinks, beside requests. */
import { isWithin } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { inTime } from '../../core/base/sleep.ts'
import { ReportError } from './post.ts'
import type { Counts, Dropped, Sink } from './report.ts'

/** How long a sink may take, ms. */
const DEADLINE_MS = 5_000

/** The log has the clients with the most refusals only, because it bounds the length of lines. */
const MAX_LOGGED = 10

export const logSink = (): Sink => ({
  name: 'log',
  send({ offenders, ...counts }) {
    const top = offenders.slice(0, MAX_LOGGED)
    console.log(JSON.stringify({ event: 'decisions', ...counts, offenders: top }))
  },
})

interface ReportsParts {
  sinks: Sink[]
  everyMs: number
  /** Returns the counts since the last report. */
  take: (now: number) => Counts
  log: Log
}

/**
 * Sends the counts at most once every `everyMs`, when a request comes: an isolate without requests has nothing new to report. A sink has at
 * most one report in flight: if it is slow, its next one is lost. One that fails, or has no result after five seconds, is lost.
 */
export function createReports({ sinks, everyMs, take, log }: ReportsParts) {
  const places = sinks.map((sink) => ({ sink, lost: 0, sentAt: undefined as number | undefined }))
  let last: number | undefined

  type Place = (typeof places)[number]

  function lose(place: Place, code: string, why = '') {
    place.lost += 1
    log('report-lost', code, `a report to ${place.sink.name} was lost${why && `: ${why}`}`)
  }

  async function report(place: Place, counts: Counts, now: number, env: Record<string, unknown>) {
    const { sink } = place
    place.sentAt = now
    let failure: unknown
    try {
      await new Promise((resolve) => setTimeout(resolve)) // lets the request go first
      await inTime(sink.send(counts, env), DEADLINE_MS, () => {
        return new ReportError('timeout', `no result after ${DEADLINE_MS} ms`)
      })
    } catch (error) {
      failure = error ?? new Error()
    }
    if (place.sentAt !== now) return // was counted as lost
    place.sentAt = undefined
    if (failure instanceof ReportError) lose(place, failure.code, failure.message)
    else if (failure) lose(place, (failure as Error).name ?? '')
  }

  return {
    /** Starts a report if one is due, under `waitUntil`. */
    send(
      now: number,
      env: Record<string, unknown>,
      waitUntil: (promise: Promise<unknown>) => void,
    ): void {
      last ??= now
      if (isWithin(now, last, last + everyMs)) return
      last = now
      const counts = take(now)
      for (const place of places) {
        const { sentAt } = place
        if (sentAt !== undefined) lose(place, 'slow')
        // A report without an end after its deadline belonged to a request that was cancelled.
        if (sentAt !== undefined && isWithin(now, sentAt, sentAt + DEADLINE_MS)) continue
        waitUntil(report(place, counts, now, env))
      }
    },
    dropped(): Dropped {
      const dropped: Dropped = {}
      for (const { sink, lost } of places) dropped[sink.name] = (dropped[sink.name] ?? 0) + lost
      return dropped
    },
  }
}
