/** Runs traffic through the deployed code, at times that the traffic sets. */
import type { LimitState } from '../../../src/core/base/decision.ts'
import type { Bill } from './bill.ts'
import { type InFlight, openDoor, type Served, type Setup } from './door.ts'
import { atOwnTime } from './own-time.ts'
import type { Arrival } from './traffic.ts'

/** The quotas of the watched client at one time. */
export interface Sample {
  /** ms since the epoch */
  at: number
  limits: LimitState[]
}

export interface Run {
  served: Served[]
  samples: Sample[]
  bill: Bill
}

export interface SimulateOptions {
  /** The looks at the quotas of the watched client: from a time to a time (ms since the epoch), with an interval. Defaults to none. */
  samples?: { from: number; to: number; everyMs: number }
  /** The address of the watched client. Defaults to that of the first request. */
  watched?: string | undefined
}

/**
 * Decides each request at its time.
 * @param arrivals in the order of their times
 * @throws {ConfigError} if the configuration is invalid
 */
export function simulate(
  setup: Setup,
  arrivals: readonly Arrival[],
  { samples, watched = arrivals[0]?.ip }: SimulateOptions = {},
): Promise<Run> {
  return atOwnTime(async (time) => {
    const bill: Bill = { calls: 0, commands: 0 }
    const [first] = arrivals
    const last = arrivals.at(-1)
    time.set(samples?.from ?? first?.at ?? 0)
    const door = openDoor(setup, bill)
    const run: Run = { served: [], samples: [], bill }
    if (!first || !last) return run
    const model = arrivals.find(({ ip }) => ip === watched) ?? first
    const inFlight: InFlight[] = []
    const nextEnd = () => Math.min(...inFlight.map(({ end }) => end))
    let sampleAt = samples?.from ?? Number.POSITIVE_INFINITY

    async function finishNext() {
      const end = nextEnd()
      const [next] = inFlight.splice(
        inFlight.findIndex((one) => one.end === end),
        1,
      )
      time.set(end)
      await next!.finish()
      await time.idle()
    }

    /** Ends the waits and the responses and takes the samples that come before a time. */
    async function passTo(ms: number) {
      for (;;) {
        const next = Math.min(nextEnd(), time.nextTimer(), sampleAt)
        if (next > ms || next === Number.POSITIVE_INFINITY) break
        if (next === nextEnd()) {
          await finishNext()
          continue
        }
        if (next === time.nextTimer()) {
          time.runTimer()
          await time.idle()
          continue
        }
        time.set(sampleAt)
        run.samples.push({ at: sampleAt, limits: await door.peek(model) })
        sampleAt += samples!.everyMs
      }
      if (ms < Number.POSITIVE_INFINITY) time.set(ms)
    }

    async function serveAt(index: number, arrival: Arrival) {
      const { served, flight } = await door.serve(arrival)
      run.served[index] = served
      if (flight) inFlight.push(flight)
      if (arrival.ip === model.ip && samples) {
        run.samples.push({ at: served.at, limits: served.decision.limits })
      }
    }

    const all: Promise<void>[] = []
    for (const [index, arrival] of arrivals.entries()) {
      await passTo(arrival.at)
      const serving = serveAt(index, arrival)
      all.push(serving)
      time.begin(serving)
      await time.idle()
    }
    const end = Math.max(last.at, samples?.to ?? 0)
    await passTo(end)
    sampleAt = Number.POSITIVE_INFINITY
    await passTo(Number.POSITIVE_INFINITY)
    await Promise.all(all)
    return run
  })
}
