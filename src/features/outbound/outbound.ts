/** A `fetch` that waits for its turn in the limits of the other side. */
import { asStoreError, StoreError } from '../../core/base/errors.ts'
import { sleep } from '../../core/base/sleep.ts'
import { needOrigin } from '../../core/config/host.ts'
import { createLimiter } from '../../core/create.ts'
import { prepare } from '../../core/decide/decide.ts'
import type { PolicyLimit } from '../../core/decide/limit.ts'
import { type Charges, dependsOnResponse } from '../../core/decide/settle.ts'
import { settleLater } from '../../core/decided-request.ts'
import { RequestView, type RuntimeContext } from '../../core/request/view.ts'
import { variablesFor } from '../../hosts/app/variables.ts'
import { Cooldowns } from './cooldowns.ts'
import { OutboundError } from './error.ts'
import { createLearner } from './learner.ts'
import { byDefault, type OutboundOptions, parseOptions } from './options.ts'
import { coolingOf } from './reports.ts'
import { sendingOf } from './sending.ts'
import { SlotQueue } from './slot-queue.ts'
import { giveUp, isRefused, type TurnStores, turnStores } from './stores.ts'
import type { Turn, TurnStore } from './turn-store.ts'

/** What `call.status()` tells. */
export interface OutboundStatus {
  /** The calls of this process or isolate that wait. */
  waiting: number
  /** ms until the next call has its turn, in the order of all processes; `null` if its cost never fits. Does not count the wait for slots. */
  nextTurnMs: number | null
  /** The calls of all processes that must end before the next call has a slot. 0 if one is free. */
  slotsAhead: number
  /** The rest of a cooldown after a 429, ms. */
  coolingMs: number
}

/** A `fetch` that waits for its turn. */
export interface Outbound {
  /**
   * Sends a request when it has its turn. Takes what `fetch` takes, and fails as it does.
   * @throws {OutboundError} if it was not sent
   */
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
  /**
   * Tells when such a call would have its turn. Takes no turn.
   * @throws {StoreError} if the store does not answer
   */
  status(input?: string | URL | Request, init?: RequestInit): Promise<OutboundStatus>
}

/** A turn that a call has. */
interface HeldTurn {
  turn: Turn
  /** The limits that are charged. */
  limits: PolicyLimit[]
  /** What has charged them. */
  store: TurnStore
  /** The longest wait that was asked for, ms. */
  waitMs: number
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
export function outbound(
  fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>,
  options: OutboundOptions,
): Outbound {
  const { config, source, waitMs, maxWaiting } = parseOptions(options)
  const limiter = createLimiter(source, {
    byDefault,
    lacks: [[needOrigin, 'outbound has no origin']],
  })
  const waitUntil: RuntimeContext['waitUntil'] =
    options.waitUntil ?? ((promise) => void promise.catch(() => {}))
  const learn = createLearner()
  const slotQueue = new SlotQueue()
  const line = `${config.policies[0]!.tag}-turn`
  let stores: TurnStores | undefined
  let waiting = 0
  const cooldowns = new Cooldowns()

  const storesOf = () => (stores ??= turnStores(limiter, variablesFor(options.env), line))

  /** The limits of a request, with a new id for its slots. */
  async function limitsOf(request: Request): Promise<PolicyLimit[]> {
    const env = variablesFor(options.env)
    const view = new RequestView(
      request,
      { env, waitUntil, context: request },
      config,
      limiter.readAddress,
    )
    const matched = await limiter.rulesOf(view).match(view)
    const prepared = await prepare({ matched }, { nameSubject: limiter.partsOf(env).nameSubject })
    if (!('limits' in prepared)) return []
    const limits = prepared.limits.filter(({ cost }) => cost > 0)
    if (limits.some(({ subject }) => subject !== limits[0]!.subject)) {
      throw new TypeError(
        'outbound: the parts of one request have different keys; send them as requests of their own',
      )
    }
    return limits
  }

  /** Asks the store, and answers by `onStoreError` if it does not answer. `undefined` if the call may go at once. */
  async function ask(limits: PolicyLimit[], untilMs: number): Promise<HeldTurn | undefined> {
    const waits = { do: 'take', waitMs: Math.max(0, untilMs - Date.now()), holdMs: waitMs } as const
    const { store, local } = storesOf()
    try {
      const turn = await store.turn({ ...waits, limits })
      cooldowns.note(limits[0]!.subject, turn.coolMs)
      return { ...waits, turn, limits, store }
    } catch (thrown) {
      const error = asStoreError(thrown)
      limiter.partsOf(variablesFor(options.env)).onStoreError(error)
      const fallback = (by: string) => limits.filter(({ policy }) => policy.onStoreError === by)
      if (fallback('deny').length > 0) {
        throw new OutboundError('store-error', `the store did not answer (${error.code})`, null, {
          cause: error,
        })
      }
      const counted = fallback('local')
      if (counted.length === 0) return undefined
      const turn = await local.turn({ ...waits, limits: counted })
      return { ...waits, turn, limits: counted, store: local }
    }
  }

  /** Waits until a call has its turn. */
  async function turnFor(
    limits: PolicyLimit[],
    untilMs: number,
    signal: AbortSignal | undefined,
  ): Promise<HeldTurn | undefined> {
    if (waiting >= maxWaiting) {
      throw new OutboundError('full', `${maxWaiting} calls wait already (maxWaiting)`, null)
    }
    waiting += 1
    let queued: ReturnType<SlotQueue['join']> | undefined
    try {
      for (;;) {
        const held = await ask(limits, untilMs)
        if (!held) return undefined
        const { turn, store } = held
        const { place, now, ahead } = turn
        const { subject } = limits[0]!
        const cooledUntil = cooldowns.of(subject)
        const giving = () => giveUp(store, held.limits, turn, held.waitMs)
        const abandon = () => waitUntil(giving())
        if (signal?.aborted) {
          abandon()
          throw signal.reason
        }
        if (place === null || isRefused(turn, held.waitMs)) {
          throw refused(place === null ? null : place - now, waitMs)
        }
        if (ahead > 0) {
          queued ??= slotQueue.join(untilMs, signal)
          if (Date.now() >= untilMs) {
            abandon()
            throw new OutboundError('slots', `no slot became free within ${waitMs} ms`, null)
          }
          await queued.next()
          continue
        }
        if (place > now && !(await sleep(place - now, signal))) {
          abandon()
          throw signal!.reason
        }
        // Another call has learnt meanwhile that nothing may be sent: this place is void.
        if (cooldowns.of(subject) > Math.max(cooledUntil, Date.now())) {
          await giving()
          continue
        }
        return held
      }
    } finally {
      waiting -= 1
      queued?.leave()
    }
  }

  const call = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const { request, ...sending } = sendingOf(fetch, input, init)
    const { signal } = sending
    signal?.throwIfAborted()
    const untilMs = Date.now() + waitMs
    const all = await limitsOf(request)
    for (;;) {
      const limits = all.map(withNewSlot)
      const held = limits.length > 0 ? await turnFor(limits, untilMs, signal) : undefined
      const settled = held && settling(held)
      let response: Response
      try {
        response = await sending.send()
      } catch (error) {
        settled?.now({ status: 500, headers: new Headers() })
        throw error
      }
      const coolMs = coolingOf(response, Date.now())
      if (held) cooldowns.note(held.limits[0]!.subject, coolMs)
      const report = held && learn(held.limits, held.turn, response, coolMs, Date.now())
      if (held && report) {
        const telling = held.store.turn(report).catch((error) => {
          if (!(error instanceof StoreError)) throw error
        })
        if (coolMs > 0) await telling
        else waitUntil(telling)
      }
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
  function settling({ limits, turn, store }: HeldTurn) {
    const charges: Charges = new Map()
    for (const limit of limits) {
      if (dependsOnResponse(limit)) charges.set(limit, { decidedAt: turn.place! })
    }
    if (charges.size === 0) return undefined
    const decide: TurnStore['decide'] = async (requests, given) => {
      const reply = await store.decide(requests, given)
      slotQueue.wake()
      return reply
    }
    const parts = limiter.partsOf(variablesFor(options.env))
    return settleLater(
      charges,
      { ...parts, store: { ...parts.store, decide } },
      waitUntil,
      limiter.stages,
    )
  }

  const status = async (
    input: string | URL | Request = 'http://localhost/',
    init?: RequestInit,
  ): Promise<OutboundStatus> => {
    const limits = await limitsOf(new Request(input, init))
    const none = { now: 0, place: 0, ahead: 0, coolMs: 0 }
    const { now, place, ahead, coolMs } =
      limits.length > 0
        ? await storesOf().store.turn({ do: 'peek', limits, waitMs: 0, holdMs: 0 })
        : none
    return {
      waiting,
      nextTurnMs: place === null ? null : place - now,
      slotsAhead: ahead,
      coolingMs: coolMs,
    }
  }

  return Object.assign(call, { status })
}

/** An attempt has slots of its own: those of the one before are still being released. */
const withNewSlot = (limit: PolicyLimit): PolicyLimit =>
  limit.slot === undefined ? limit : { ...limit, slot: crypto.randomUUID() }

const refused = (turnMs: number | null, waitMs: number): OutboundError =>
  turnMs === null
    ? new OutboundError(
        'too-large',
        'the cost of the call is above the limit: it never has a turn',
        null,
      )
    : new OutboundError(
        'wait',
        `the turn of the call is in ${turnMs} ms, and wait is ${waitMs} ms`,
        turnMs,
      )

/** A response with another body keeps its URL, which the constructor of `Response` does not take. */
function withUrl(response: Response, { url, redirected }: Response): Response {
  if (response.url !== url) {
    Object.defineProperties(response, { url: { value: url }, redirected: { value: redirected } })
  }
  return response
}
