/** The two doors of Sluice that the playground has: requests over HTTP, and calls with a name and a key. */
import type { Decision, LimitState } from '../../../src/core/base/decision.ts'
import type { RuntimeContext } from '../../../src/core/base/runtime.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { type Config, type Policy, parseConfig } from '../../../src/core/config/parse.ts'
import { createLimiter } from '../../../src/core/create.ts'
import { answer } from '../../../src/core/decide/decide.ts'
import { checkRequest } from '../../../src/core/pipeline.ts'
import { RequestView } from '../../../src/core/request/view.ts'
import { defaultFields, defaults } from '../../../src/features/defaults.ts'
import { limits } from '../../../src/limits/limits.ts'
import { type LimitTerms, parseLimits } from '../../../src/limits/terms.ts'
import type { Call } from '../editor/read-config.ts'
import type { Bill } from './bill.ts'
import { memoryStore } from './memory-store.ts'
import { DEADLINE } from './own-time.ts'
import type { Arrival } from './traffic.ts'

/** What a text describes: a configuration, or limits and a call of one of them. */
export type Setup = ConfigOptions | { terms: Record<string, LimitTerms>; call: Call }

/** One request after its decision. */
export interface Served {
  arrival: Arrival
  /** When it was answered or went on to the origin, ms since the epoch. A request that waits for its turn goes on later than it arrives. */
  at: number
  decision: Decision
  /** Of the response. A call has none. */
  status?: number
  /** The fields of the response that Sluice adds, or all fields of a refusal. */
  fields: [name: string, value: string][]
  /** The body of a refusal. */
  body?: string
  /** The call and its result, if it is one. */
  called?: string
}

/** A request whose response the origin has not finished. */
export interface InFlight {
  /** ms since the epoch */
  end: number
  finish(): Promise<unknown>
}

export interface Door {
  serve(arrival: Arrival): Promise<{ served: Served; flight?: InFlight }>
  /** The quotas that a request would charge, without a charge. */
  peek(arrival: Arrival): Promise<LimitState[]>
}

export const openDoor = (setup: Setup, bill: Bill): Door =>
  'call' in setup ? callDoor(setup, bill) : httpDoor(setup, bill)

/** @throws {ConfigError} if the configuration or the terms are invalid */
export const parsed = (setup: Setup): Config =>
  'call' in setup ? parseLimits(setup.terms, {}, defaultFields) : parseConfig(setup, defaultFields)

/** The policy that the traffic is made for, and that is compared: the first one, or the limit of the call. */
export function firstOf(setup: Setup): { options?: PolicyOptions; policy: Policy | undefined } {
  const { policies } = parsed(setup)
  if (!('call' in setup)) return { options: setup.policies[0]!, policy: policies[0] }
  const { name } = setup.call
  return {
    options: { ...setup.terms[name]!, name },
    policy: policies.find((policy) => policy.name === name),
  }
}

/** The same setup with one policy alone. */
export function withOnly(setup: Setup, { name, ...terms }: PolicyOptions): Setup {
  if (!('call' in setup)) return { ...setup, policies: [{ name, ...terms }] }
  return { ...setup, terms: { [name]: terms as LimitTerms } }
}

/**
 * Decides requests. Traffic names the address of each client, as Cloudflare does. `observe`, `live` and `shield` would call others.
 */
function httpDoor({ live: _, shield: __, ...options }: ConfigOptions, bill: Bill): Door {
  const { use = [], clock, policies } = options
  const own = {
    ...options,
    deadline: DEADLINE,
    policies: policies.map(({ deadline: _, ...policy }) => policy),
    use: use.filter(({ name }) => name !== 'observe'),
    clientAddress: 'cloudflare' as const,
    store: memoryStore(bill, clock === 'edge'),
  }
  const limiter = createLimiter(own, { byDefault: defaults() })
  return {
    async serve(arrival) {
      const waiting: Promise<unknown>[] = []
      const waitUntil: RuntimeContext['waitUntil'] = (promise) => void waiting.push(promise)
      const request = requestOf(arrival)
      const checked = await checkRequest(limiter, request, { env, context: request, waitUntil })
      const { decision, isRead } = checked
      const ended = Promise.withResolvers<void>()
      const { status } = arrival
      const response = !decision.allowed
        ? await checked.refuse()
        : isRead
          ? checked.finish(originResponse(arrival, ended.promise))
          : checked.withFields(new Response(null, { status }))
      const served: Served = {
        arrival,
        at: Date.now(),
        decision,
        status: response.status,
        fields: [...response.headers].filter(([name]) => !/^content-length$/.test(name)),
        ...(!decision.allowed && { body: await response.text() }),
      }
      if (!decision.allowed || waiting.length === 0) return { served }
      const flight: InFlight = {
        end: served.at + arrival.durationMs,
        async finish() {
          ended.resolve()
          if (isRead) await response.text()
          else checked.settle({ status, headers: new Headers() })
          await Promise.all(waiting)
        },
      }
      return { served, flight }
    },
    async peek(arrival) {
      const runtime = { env, context: undefined, waitUntil: () => {} }
      const { config, readAddress, rulesOf, partsOf } = limiter
      const view = new RequestView(requestOf(arrival), runtime, config, readAddress)
      const parts = partsOf(env)
      const matched = await rulesOf(view).match(view, () => false)
      return (await answer({ matched, mode: 'peek' }, parts, {})).decision.limits
    },
  }
}

const env = { SLUICE_SECRET: 'playground' }

export const requestOf = ({ ip, method, url, headers, ...cf }: Arrival): Request =>
  Object.assign(new Request(url, { method, headers: { ...headers, 'cf-connecting-ip': ip } }), {
    cf,
  })

/** A response whose body comes when the origin has finished. */
function originResponse({ status, body = '' }: Arrival, ended: Promise<void>): Response {
  const stream = new ReadableStream({
    async pull(controller) {
      await ended
      controller.enqueue(new TextEncoder().encode(body))
      controller.close()
    },
  })
  return new Response(stream, { status, headers: { 'content-type': 'application/json' } })
}

/** Decides calls. The key is the name of a client. */
function callDoor({ terms, call }: Extract<Setup, { call: Call }>, bill: Bill): Door {
  const own = Object.entries(terms).map(([name, one]) => [name, { ...one, deadline: DEADLINE }])
  const quota = limits<string>(Object.fromEntries(own), {
    store: memoryStore(bill, false),
    deadline: DEADLINE,
    env,
  })
  const { name, cost } = call
  const options = cost === undefined ? undefined : { cost }
  return {
    async serve(arrival) {
      const key = arrival.ip
      const decision = await quota.limit(name, key, options)
      const { allowed, reason, limit, remaining, resetAfterMs, retryAfterMs } = decision
      const written = [`'${name}'`, `'${key}'`, ...(options ? [`{ cost: ${cost} }`] : [])]
      const result = { allowed, reason, limit, remaining, resetAfterMs, retryAfterMs }
      const served: Served = {
        arrival,
        at: Date.now(),
        decision: { ...decision, allowed, reason, retryAfterMs, limits: decision.limits },
        fields: Object.entries(decision.fields()),
        called: `await quota.limit(${written.join(', ')})\n${JSON.stringify(result, null, 2)}`,
      }
      if (decision.slot === undefined) return { served }
      const flight = { end: served.at + arrival.durationMs, finish: () => decision.settle() }
      return { served, flight }
    },
    peek: async ({ ip }) => [...(await quota.peek(name, ip, options)).limits],
  }
}
