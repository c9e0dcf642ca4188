/** A `fetch` that waits for its turn in the limits of the other side. */

import { tagOf } from '../core/base/fnv.ts'
import { withRedisUrl } from '../core/base/redis-url.ts'
import { keepNothing } from '../core/base/runtime.ts'
import { variablesFor } from '../core/base/variables.ts'
import { limitsOf, longer } from '../core/decide/limit.ts'
import type { Outcome } from '../core/decide/question.ts'
import { holdsSlots } from '../core/decide/settle.ts'
import { RequestView } from '../core/request/view.ts'
import { settleLater } from '../core/settle-later.ts'
import { NEVER } from '../features/bans/fields.ts'
import { bannedIn, createCooldowns, type OutboundCooldown } from './cooldowns.ts'
import { createLearner } from './learner.ts'
import { type OutboundOptions, parseOptions } from './options.ts'
import { coolingOf } from './reports.ts'
import { type Fetch, sendingOf } from './sending.ts'
import { type Asked, createTurns } from './turns.ts'

/** What `call.status()` tells. */
export interface OutboundStatus {
  /** The calls of this process or isolate that wait. */
  waiting: number
  /** ms until the next call has its turn, behind those of all processes; `null` if its cost never fits. Does not count the wait for slots. */
  nextTurnMs: number | null
  /** The calls that must end before the next call has a slot: of those that have one, and those of this process that wait. 0 if one is free. */
  slotsAhead: number
  /** The rest of a cooldown after a 429, ms. */
  coolingMs: number
}

/** The cooldowns of the other side, for operators. Without a call, those of all keys that this process knows, and of a call without fields. */
export interface OutboundCooldowns {
  /** The cooldowns in force. Rejects with a `StoreError` if the store does not answer. */
  list(input?: string | URL | Request, init?: RequestInit): Promise<OutboundCooldown[]>
  /** Ends the cooldowns in force, and returns them. All processes send again within 10 s. Rejects as `list` does. */
  lift(input?: string | URL | Request, init?: RequestInit): Promise<OutboundCooldown[]>
}

/** A `fetch` that waits for its turn. */
export interface Outbound {
  /** Sends a request when it has its turn. Takes what `fetch` takes, and fails as it does, or with an `OutboundError` if it was not sent. */
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Tells when such a call would have its turn. Takes no turn. Rejects with a `StoreError` if the store does not answer. */
  status(input?: string | URL | Request, init?: RequestInit): Promise<OutboundStatus>
  /** Finds and ends cooldowns, for example one that the other side has told by mistake. */
  cooldowns: OutboundCooldowns
}

/**
 * Makes a `fetch` that keeps to the limits of another service, together with all processes that use the same store: each call waits for its
 * turn. A 429 of the other side delays the calls of all processes.
 * @param fetch sends the requests, usually `fetch`
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * const call = outbound(fetch, {
 *   policies: [{ name: 'github', algorithm: 'token-bucket', limit: 80, window: '1m', burst: 10 }],
 *   wait: '30s',
 * })
 * const response = await call('https://api.github.com/user')
 */
export function outbound(fetch: Fetch, options: OutboundOptions): Outbound {
  const parsed = parseOptions(withRedisUrl(options))
  const { limiter, waitMs } = parsed
  const waitUntil = options.waitUntil ?? keepNothing
  const partsOf = () => limiter.partsOf(variablesFor(options.env))
  const learn = createLearner(partsOf, waitUntil)
  const cooldowns = createCooldowns(partsOf, waitUntil)
  const turns = createTurns(parsed, cooldowns, partsOf, waitUntil)
  // No refusal starts it.
  const cooldown = { ...NEVER, tag: tagOf(limiter.config.policies[0]!.name, 'cooldown') }

  async function askOf(request: Request): Promise<Asked> {
    const runtime = { env: variablesFor(options.env), waitUntil, context: request }
    const view = new RequestView(request, runtime, limiter.config, limiter.readAddress)
    const matched = await limiter.rulesOf(view).match(view)
    const [first] = matched.policies
    // The limits have one record, and that has one cooldown.
    if (first) first.penalty = cooldown
    const limits = await limitsOf(matched.policies, undefined, partsOf())
    if (limits.some(({ subject }) => subject !== limits[0]!.subject)) {
      throw new TypeError(
        'outbound: the parts of one request have different keys; send them as requests of their own',
      )
    }
    return { matched, limits }
  }

  const call = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const { request, ...sending } = sendingOf(fetch, input, init)
    const { signal } = sending
    signal?.throwIfAborted()
    const untilMs = Date.now() + waitMs
    const asked = await askOf(request)
    const [first] = asked.limits
    for (;;) {
      const outcome = await turns.next(asked, untilMs, signal)
      const settled = settling(outcome)
      let response: Response
      try {
        response = await sending.send()
      } catch (error) {
        settled?.now() // the other side may have counted it
        throw error
      }
      const coolMs = first ? coolingOf(response, Date.now()) : 0
      if (coolMs > 0) await cooldowns.start(first!, coolMs)
      waitUntil(learn(asked.limits, outcome.decision, response.headers))
      const isRefused = coolMs > 0 && response.status !== 503
      if (!isRefused || !sending.isRepeatable || Date.now() + coolMs >= untilMs) {
        return settled
          ? withUrl(settled.withResponse(response, sending.method), response)
          : response
      }
      settled?.now(response)
      await response.body?.cancel()
    }
  }

  /** Prepares to settle the charges of a call that has its turn. */
  function settling({ charges }: Outcome) {
    if (!charges) return undefined
    return settleLater(charges, partsOf(), waitUntil, limiter.stages)
  }

  /** The limits of a call, to ask about them. */
  const about = async (input: string | URL | Request = 'http://localhost/', init?: RequestInit) =>
    (await askOf(new Request(input, init))).limits

  const status: Outbound['status'] = async (input, init) => {
    const limits = await about(input, init)
    const { waiting, slots } = turns
    if (limits.length === 0) return { waiting, nextTurnMs: 0, slotsAhead: 0, coolingMs: 0 }
    const { deadlineMs } = limiter.config
    const { states } = await partsOf().store.decide([{ mode: 'peek', limits }], { deadlineMs })
    const coolingMs = Math.max(bannedIn(states[0]!), cooldowns.restOf(limits[0]!.subject))
    let [nextTurnMs, slotsAhead]: [number | null, number] = [coolingMs, 0]
    limits.forEach((limit, index) => {
      const { retryAfterMs, remaining } = states[0]![index]!
      if (holdsSlots(limit)) {
        slotsAhead = Math.max(slotsAhead, limit.cost - remaining + slots.waiting(limit))
        if (retryAfterMs === null) nextTurnMs = null
      } else nextTurnMs = longer(nextTurnMs, retryAfterMs)
    })
    return { waiting, nextTurnMs, slotsAhead, coolingMs }
  }

  /** One limit for each key that an operator asks about. */
  async function keysOf(input?: string | URL | Request, init?: RequestInit) {
    const own = (await about(input, init)).slice(0, 1)
    return input === undefined ? [...cooldowns.known(), ...own] : own
  }

  return Object.assign(call, {
    status,
    cooldowns: {
      list: async (...given) => cooldowns.find(await keysOf(...given), false),
      lift: async (...given) => cooldowns.find(await keysOf(...given), true),
    } satisfies OutboundCooldowns as OutboundCooldowns,
  })
}

/** A response with another body keeps its URL, which the constructor of `Response` does not take. */
function withUrl(response: Response, { url, redirected }: Response): Response {
  if (response.url !== url) {
    Object.defineProperties(response, { url: { value: url }, redirected: { value: redirected } })
  }
  return response
}
