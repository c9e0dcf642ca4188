/** Isolates whose requests may wait, on Durable Objects in this process and at a time of their own. */

import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { decideEach } from '../../src/core/decide/decide.ts'
import { type Operation, operate } from '../../src/core/decide/operate.ts'
import type { DecideOptions } from '../../src/core/decide/question.ts'
import { RequestView } from '../../src/core/request/view.ts'
import { type TurnsOptions, turns } from '../../src/features/turns/index.ts'
import { createAppLimiter } from '../../src/hosts/app/app-limiter.ts'
import { checkOf } from '../../src/hosts/app/sluice.ts'
import { durableObjects } from '../../src/stores/durable-objects/index.ts'
import type { ObjectNamespace } from '../../src/stores/durable-objects/runtime.ts'
import type { ObjectCall } from '../../src/stores/durable-objects/wire.ts'
import { bans, overrides, plans, slidingLog } from './features.ts'
import { memoryObjects } from './memory-objects.ts'
import type { VirtualTime } from './virtual-time.ts'

export type Policies = PolicyOptions<Request>[]
export interface IsolateChange extends Partial<ConfigOptions<Request>>, TurnsOptions {
  /** How far its clock is ahead, ms. */
  skew?: number
}

/** Durable Objects behind a network. */
export function heldWorld(time: VirtualTime, latency: () => number = () => 0) {
  const memory = memoryObjects()
  const travel = async () => {
    const ms = latency()
    if (ms > 0) await time.sleep(ms)
  }
  const world = {
    /** What a call meets instead of an object. */
    fault: undefined as 'fails' | 'hangs' | undefined,
    /** The calls that have reached an object. */
    calls: 0,
    /** The requests that an object has charged, of takes with a ticket. */
    charged: [] as { request: StoreRequest; decidedAt: number }[],
    isolate,
  }
  const objects: ObjectNamespace = {
    idFromName: (name) => name,
    jurisdiction: () => objects,
    get: (id) => ({
      async fetch(_, { body }) {
        const { fault } = world
        await travel()
        if (fault === 'hangs') await new Promise(() => {})
        if (fault) throw new Error('a fault')
        const { subject } = memory.at(id as string) ?? memory.restart(id as string)
        const call = JSON.parse(body)
        const response = await time.ahead(0, () =>
          subject.fetch({ json: async () => call } as never),
        )
        const answer = await time.during(response.json())
        world.calls += 1
        note(call, answer)
        await travel()
        return { ok: true, json: async () => answer } as Response
      },
    }),
  }

  function note({ lists }: ObjectCall, { replies = [] }: { replies?: Reply[] }) {
    lists.forEach((list, at) => {
      const { decidedAt, states, replayed } = replies[at]!
      list.forEach((request, index) => {
        const passes = states[index]!.every(({ allowed }) => allowed)
        if (request.mode === 'take' && passes && !replayed)
          world.charged.push({ request, decidedAt })
      })
    })
  }

  /** Creates an isolate, and functions that ask it. */
  function isolate(
    policies: Policies,
    { skew = 0, maxWaiting = 1_000, ...change }: IsolateChange = {},
  ) {
    const env = { SLUICE_SUBJECT: objects, SLUICE_SECRET: 'a secret for tests' }
    const limiter = createAppLimiter({
      deadline: '1s',
      store: durableObjects(),
      ...change,
      policies,
      use: [
        turns({ maxWaiting }),
        slidingLog(),
        bans(),
        overrides(),
        plans(),
        ...(change.use ?? []),
      ],
    })
    const check = checkOf(limiter)
    const ahead = <T>(task: () => T) => time.ahead(skew, task)
    const requestOf = (headers: HeadersInit, signal?: AbortSignal) =>
      new Request('http://localhost/', { headers, ...(signal && { signal }) })

    async function matchedOf(request: Request) {
      const runtime = { env, context: request, waitUntil: quietly, remoteAddress: undefined }
      const view = new RequestView(request, runtime, limiter.config, limiter.readAddress)
      return {
        matched: await limiter.rulesOf(view).match(view),
        parts: limiter.partsOf(env as never),
      }
    }
    return {
      /** A request of a client, which stays until `closed`. */
      check: (headers: HeadersInit = {}, closed?: Promise<unknown>) =>
        ahead(async () => {
          const startedAt = time.now()
          const result = await check(requestOf(headers), { env, closed, waitUntil: quietly })
          const { allowed, decision } = result
          return { allowed, decision, result, startedAt, endedAt: time.now() }
        }),
      /** A call of the decision API. */
      decide: (
        headers: HeadersInit = {},
        options: DecideOptions = {},
        mode: 'take' | 'peek' = 'take',
      ) =>
        ahead(async () => {
          const { matched, parts } = await matchedOf(requestOf(headers))
          const given = { waitUntil: quietly, ...options }
          const [outcome] = await decideEach([{ matched, mode }], parts, given)
          return outcome!.decision
        }),
      /** A call of an operator. */
      operate: (operation: Operation, headers: HeadersInit = {}) =>
        ahead(async () => {
          const { matched, parts } = await matchedOf(requestOf(headers))
          for (const match of matched.policies) {
            await operate(operation, [match], parts, { waitUntil: quietly })
          }
        }),
    }
  }
  return world
}

interface Reply {
  decidedAt: number
  states: { allowed: boolean }[][]
  replayed?: true
}

const quietly = (promise: Promise<unknown>) => void promise.catch(() => {})
