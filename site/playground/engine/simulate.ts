/** Runs traffic through the deployed code, at times that the traffic sets. */
import type { Decision, LimitState } from '../../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { createLimiter, type Limiter } from '../../../src/core/create.ts'
import { decide, prepare } from '../../../src/core/decide/decide.ts'
import type { CheckedRequest } from '../../../src/core/decided-request.ts'
import { checkRequest } from '../../../src/core/pipeline.ts'
import { RequestView, type RuntimeContext } from '../../../src/core/request/view.ts'
import { byDefault } from '../editor/features.ts'
import type { Bill } from './bill.ts'
import { memoryStore } from './memory-store.ts'
import type { Arrival } from './traffic.ts'

/** One request after its decision. */
export interface Served {
  arrival: Arrival
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

/** Runs a task while `Date.now()` is a time of its own. Nothing else may run meanwhile: the playground does this in a worker of its own. */
async function atOwnTime<T>(task: (setTime: (ms: number) => void) => Promise<T>): Promise<T> {
  const { now } = Date
  let time = now()
  Date.now = () => time
  try {
    return await task((ms) => {
      time = ms
    })
  } finally {
    Date.now = now
  }
}

/** Longer than any pause of the browser: a decision has a time of the traffic, and no time of the machine. */
const DEADLINE = '20d'

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
  return createLimiter(own, { byDefault })
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
  return atOwnTime(async (setTime) => {
    const bill: Bill = { calls: 0, commands: 0 }
    const [first] = arrivals
    const last = arrivals.at(-1)
    setTime(samples?.from ?? first?.at ?? 0)
    const limiter = limiterOf(options, bill)
    const run: Run = { served: [], samples: [], bill }
    if (!first || !last) return run
    const model = arrivals.find(({ ip }) => ip === watched) ?? first
    const inFlight: InFlight[] = []
    let sampleAt = samples?.from ?? Number.POSITIVE_INFINITY

    /** Ends the responses and takes the samples that come before a time. */
    async function passTo(time: number) {
      for (;;) {
        inFlight.sort((one, other) => one.end - other.end)
        const end = inFlight[0]?.end ?? Number.POSITIVE_INFINITY
        if (Math.min(end, sampleAt) > time) break
        if (end <= sampleAt) {
          setTime(end)
          await inFlight.shift()!.finish()
          continue
        }
        setTime(sampleAt)
        run.samples.push({ at: sampleAt, limits: await peek(limiter, model) })
        sampleAt += samples!.everyMs
      }
      setTime(time)
    }

    for (const arrival of arrivals) {
      await passTo(arrival.at)
      const { served, flight } = await serve(limiter, arrival)
      run.served.push(served)
      if (flight) inFlight.push(flight)
      if (arrival.ip === model.ip && samples) {
        run.samples.push({ at: arrival.at, limits: served.decision.limits })
      }
    }
    await passTo(Math.max(last.at, samples?.to ?? 0))
    for (const { end, finish } of inFlight.sort((one, other) => one.end - other.end)) {
      setTime(end)
      await finish()
    }
    return run
  })
}

/** A response that the origin has not finished. */
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
    decision,
    status: response.status,
    fields: [...response.headers].filter(([name]) => name !== 'content-length'),
    ...(!decision.allowed && { body: await response.text() }),
  }
  if (!decision.allowed || waiting.length === 0) return { served }
  const flight: InFlight = {
    end: arrival.at + arrival.durationMs,
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
