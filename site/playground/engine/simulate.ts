/** Runs traffic through the deployed code, at times that the traffic sets. */
import type { Decision, LimitState } from '../../../src/core/base/decision.ts'
import type { RuntimeContext } from '../../../src/core/base/runtime.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { createLimiter, type Limiter } from '../../../src/core/create.ts'
import { decide, prepare } from '../../../src/core/decide/decide.ts'
import type { CheckedRequest } from '../../../src/core/decided-request.ts'
import { checkRequest } from '../../../src/core/pipeline.ts'
import { RequestView } from '../../../src/core/request/view.ts'
import { defaults } from '../../../src/features/defaults.ts'
import type { Bill } from './bill.ts'
import { memoryStore } from './memory-store.ts'
import { atOwnTime, DEADLINE } from './own-time.ts'
import type { Arrival } from './traffic.ts'

/** One request after its decision. */
export interface Served {
  arrival: Arrival
  /** When it was answered or went on to the origin, ms since the epoch. A request that waits for its turn goes on later than it arrives. */
  at: number
  decision: Decision
  status: number
  /** The fields of the response that Sluice adds, or all fields of a refusal. */
  fields: [name: string, value: string][]
  /** The body of a refusal. */
  body?: string
}

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
 * The limiter of a configuration. Traffic names the address of each client, as Cloudflare does. `observe`, `live` and
 * `shield` would call others.
 */
function limiterOf({ live: _, shield: __, ...options }: ConfigOptions, bill: Bill): Limiter {
  const { use = [], clock, policies } = options
  const own = {
    ...options,
    deadline: DEADLINE,
    policies: policies.map(({ deadline: _, ...policy }) => policy),
    use: use.filter(({ name }) => name !== 'observe'),
    clientAddress: 'cloudflare' as const,
    store: memoryStore(bill, clock === 'edge'),
  }
  return createLimiter(own, { byDefault: defaults() })
}

export const requestOf = ({ ip, method, url, headers, ...cf }: Arrival): Request =>
  Object.assign(new Request(url, { method, headers: { ...headers, 'cf-connecting-ip': ip } }), {
    cf,
  })

/**
 * Decides each request at its time.
 * @param arrivals in the order of their times
 * @throws {ConfigError} if the configuration is invalid
 */
export function simulate(
  options: ConfigOptions,
  arrivals: readonly Arrival[],
  { samples, watched = arrivals[0]?.ip }: SimulateOptions = {},
): Promise<Run> {
  return atOwnTime(async (time) => {
    const bill: Bill = { calls: 0, commands: 0 }
    const [first] = arrivals
    const last = arrivals.at(-1)
    time.set(samples?.from ?? first?.at ?? 0)
    const limiter = limiterOf(options, bill)
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
        run.samples.push({ at: sampleAt, limits: await peek(limiter, model) })
        sampleAt += samples!.everyMs
      }
      if (ms < Number.POSITIVE_INFINITY) time.set(ms)
    }

    async function serveAt(index: number, arrival: Arrival) {
      const { served, flight } = await serve(limiter, arrival)
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

/** A request whose response the origin has not finished. */
interface InFlight {
  /** ms since the epoch */
  end: number
  finish(): Promise<void>
}

const env = { SLUICE_SECRET: 'playground' }

async function serve(limiter: Limiter, arrival: Arrival) {
  const waiting: Promise<unknown>[] = []
  const waitUntil: RuntimeContext['waitUntil'] = (promise) => void waiting.push(promise)
  const request = requestOf(arrival)
  const checked = await checkRequest(limiter, request, { env, context: request, waitUntil })
  const response = await responseTo(checked, arrival)
  const { decision } = checked
  const served: Served = {
    arrival,
    at: Date.now(),
    decision,
    status: response.status,
    fields: [...response.headers].filter(([name]) => name !== 'content-length'),
    ...(!decision.allowed && { body: await response.text() }),
  }
  if (!decision.allowed || waiting.length === 0) return { served }
  const flight: InFlight = {
    end: served.at + arrival.durationMs,
    async finish() {
      checked.settle({ status: arrival.status, headers: new Headers() })
      await Promise.all(waiting)
    },
  }
  return { served, flight }
}

function responseTo(checked: CheckedRequest, { status }: Arrival): Response | Promise<Response> {
  if (!checked.decision.allowed) return checked.refuse()
  return checked.withFields(new Response(null, { status }))
}

/** The quotas that a request would charge, without a charge. */
async function peek(limiter: Limiter, arrival: Arrival): Promise<LimitState[]> {
  const runtime = { env, context: undefined, waitUntil: () => {} }
  const { config, readAddress, rulesOf, partsOf } = limiter
  const view = new RequestView(requestOf(arrival), runtime, config, readAddress)
  const parts = partsOf(env)
  const matched = await rulesOf(view).match(view, () => false)
  const prepared = await prepare({ matched, mode: 'peek' }, parts)
  if ('decision' in prepared) return prepared.decision.limits
  return (await decide(prepared, parts)).decision.limits
}
