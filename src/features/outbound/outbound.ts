/** A `fetch` that waits for its turn in the limits of the other side. */
import { StoreError } from '../../core/base/errors.ts'
import { sleep } from '../../core/base/sleep.ts'
import { tagOf } from '../../core/base/tag.ts'
import { withResolvers } from '../../core/base/with-resolvers.ts'
import type { Correction, Store } from '../../core/connection/store.ts'
import { REFUND_MS } from '../../core/connection/store.ts'
import { createLimiter } from '../../core/create.ts'
import { decide, prepare } from '../../core/decide/decide.ts'
import { longer, type PolicyLimit } from '../../core/decide/limit.ts'
import { operate } from '../../core/decide/operate.ts'
import type { Outcome, Pending } from '../../core/decide/question.ts'
import { holdsSlots } from '../../core/decide/settle.ts'
import { settleLater } from '../../core/decided-request.ts'
import type { Matched } from '../../core/program/match.ts'
import { RequestView, type RuntimeContext } from '../../core/request/view.ts'
import { variablesFor } from '../../hosts/app/variables.ts'
import { createRoom } from '../turns/room.ts'
import { bannedIn, cooldownOf, createCooldowns, type OutboundCooldown } from './cooldowns.ts'
import { OutboundError } from './error.ts'
import { createLearner, debtOf } from './learner.ts'
import { type OutboundOptions, parseOptions } from './options.ts'
import { coolingOf } from './reports.ts'
import { sendingOf } from './sending.ts'
import { type QueuedCall, SlotQueues } from './slot-queue.ts'

/** So often a call in a cooldown asks again, ms: an operator may have lifted it. */
const ASK_MS = 10_000

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
  /**
   * The cooldowns in force.
   * @throws {StoreError} if the store does not answer
   */
  list(input?: string | URL | Request, init?: RequestInit): Promise<OutboundCooldown[]>
  /**
   * Ends the cooldowns in force. All processes send again within 10 s.
   * @returns those that it has ended
   * @throws {StoreError} if the store does not answer
   */
  lift(input?: string | URL | Request, init?: RequestInit): Promise<OutboundCooldown[]>
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
  /** Finds and ends cooldowns, for example one that the other side has told by mistake. */
  cooldowns: OutboundCooldowns
}

/** A call that has its turn. */
interface Turn {
  limits: PolicyLimit[]
  outcome: Outcome
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
  const { config, source, byDefault, waitMs, maxWaiting } = parseOptions(options)
  const limiter = createLimiter(source, { byDefault })
  const waitUntil: RuntimeContext['waitUntil'] =
    options.waitUntil ?? ((promise) => void promise.catch(() => {}))
  const partsOf = () => limiter.partsOf(variablesFor(options.env))
  const learn = createLearner()
  const slots = new SlotQueues()
  const room = createRoom(maxWaiting)
  const cooldowns = createCooldowns(partsOf, waitUntil)
  const cooldown = cooldownOf(tagOf(config.policies[0]!.name, 'cooldown'))
  /** The subjects with a report that is charged now: two at once would charge the same units twice. */
  const learning = new Set<string>()

  async function matchedOf(request: Request): Promise<Matched> {
    const runtime = { env: variablesFor(options.env), waitUntil, context: request }
    const view = new RequestView(request, runtime, config, limiter.readAddress)
    return limiter.rulesOf(view).match(view)
  }

  /** Makes the limits of a call, which have one subject. Or its outcome, if that is known without the store. */
  async function prepared(matched: Matched, mode: Pending['mode']): Promise<Pending | Outcome> {
    const found = await prepare({ matched, mode }, partsOf())
    if (!('limits' in found)) return found
    const [first, ...others] = found.limits
    if (others.some(({ subject }) => subject !== first!.subject)) {
      throw new TypeError(
        'outbound: the parts of one request have different keys; send them as requests of their own',
      )
    }
    // The limits have one record, and that has one cooldown.
    first!.penalty = cooldown
    return found
  }

  /** Waits until a call has its turn. */
  async function turnFor(
    matched: Matched,
    untilMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Turn> {
    const mostMs = Math.max(0, untilMs - Date.now())
    const guest = room.enter({ mostMs, subjects: [], question: () => undefined })
    if (guest.isFull) {
      throw new OutboundError('full', `${maxWaiting} calls wait already (maxWaiting)`, null)
    }
    const { promise: closed, resolve } = withResolvers<void>()
    const abort = () => resolve()
    signal?.addEventListener('abort', abort)
    let queued: QueuedCall | undefined

    /** Asks the store, unless it is known that the call cannot pass. */
    async function ask(): Promise<Turn | Obstacle> {
      const found = await prepared(matched, 'take')
      const limits = 'limits' in found ? found.limits : []
      const [first] = limits
      const coolMs = first ? cooldowns.restOf(first.subject) : 0
      if (coolMs > 0) return { coolMs }
      const slot = limits.find((limit) => holdsSlots(limit) && slots.waiting(limit) > 0)
      if (slot && !queued) return { slot }
      if ('limits' in found) found.waitMs = Math.max(0, untilMs - Date.now())
      const outcome =
        'limits' in found ? await decide(found, partsOf(), { closed, waitUntil }) : found
      if (outcome.decision.allowed) return { limits, outcome }
      signal?.throwIfAborted()
      const restMs = Math.max(0, untilMs - Date.now())
      const obstacle = obstacleOf(limits, outcome, restMs, waitMs)
      if (first && 'coolMs' in obstacle) cooldowns.note(first)
      return obstacle
    }

    try {
      for (;;) {
        signal?.throwIfAborted()
        const found = await ask()
        if ('outcome' in found) return found
        if ('slot' in found) {
          queued ??= slots.join(found.slot, untilMs, signal)
          if (Date.now() >= untilMs) {
            throw new OutboundError('slots', `no slot became free within ${waitMs} ms`, null)
          }
          await queued.next()
        } else {
          if (Date.now() + found.coolMs > untilMs) throw tooLate(found.coolMs, waitMs)
          await sleep(Math.min(found.coolMs, ASK_MS), signal)
        }
      }
    } finally {
      guest.leave()
      queued?.leave()
      signal?.removeEventListener('abort', abort)
    }
  }

  const call = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const { request, ...sending } = sendingOf(fetch, input, init)
    const { signal } = sending
    signal?.throwIfAborted()
    const untilMs = Date.now() + waitMs
    const matched = await matchedOf(request)
    for (;;) {
      const turn = await turnFor(matched, untilMs, signal)
      const settled = settling(turn)
      let response: Response
      try {
        response = await sending.send()
      } catch (error) {
        settled?.now({ status: 500, headers: new Headers() })
        throw error
      }
      const [first] = turn.limits
      const coolMs = first ? coolingOf(response, Date.now()) : 0
      if (coolMs > 0) await cooldowns.start(first!, coolMs)
      const report = learn(turn.limits, turn.outcome.decision.limits, response.headers, Date.now())
      waitUntil(apply(report, turn))
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
  function settling({ outcome: { charges } }: Turn) {
    if (!charges) return undefined
    const parts = partsOf()
    const store: Store = {
      ...parts.store,
      async decide(requests, given) {
        const reply = await parts.store.decide(requests, given)
        for (const limit of requests.flatMap(({ limits }) => limits)) slots.wake(limit)
        return reply
      },
    }
    return settleLater(charges, { ...parts, store }, waitUntil, limiter.stages)
  }

  /** Applies what the other side has said about its limits. What the store does not take is told again by the next response. */
  async function apply(
    { lowered, less }: ReturnType<typeof learn>,
    { limits, outcome }: Turn,
  ): Promise<void> {
    const parts = partsOf()
    for (const { limit, units, forMs } of lowered)
      await operate({ mode: 'override', units, forMs }, [limit], parts, { waitUntil })
    const { decidedAt: sentAt } = outcome.decision
    const { subject } = limits[0] ?? {}
    if (less.length === 0 || sentAt === undefined || learning.has(subject!)) return
    learning.add(subject!)
    const options = { deadlineMs: REFUND_MS, waitUntil }
    try {
      const asked = less.map(({ limit }) => ({ ...limit, cost: 0 }))
      const { states, decidedAt } = await parts.store.decide(
        [{ mode: 'peek', limits: asked }],
        options,
      )
      const debts = less.flatMap((one, index): Correction[] => {
        const cost = debtOf(one, states[0]![index]!, sentAt, decidedAt)
        return cost > 0 ? [{ mode: 'debt', limits: [{ ...one.limit, cost }] }] : []
      })
      if (debts.length > 0) await parts.store.decide(debts, options)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      parts.onStoreError(error)
    } finally {
      learning.delete(subject!)
    }
  }

  /** The limits of a call, to ask about them. */
  async function limitsOf(input: string | URL | Request = 'http://localhost/', init?: RequestInit) {
    const found = await prepared(await matchedOf(new Request(input, init)), 'peek')
    return 'limits' in found ? found.limits : []
  }

  const status: Outbound['status'] = async (input, init) => {
    const limits = await limitsOf(input, init)
    const waiting = room.size
    if (limits.length === 0) return { waiting, nextTurnMs: 0, slotsAhead: 0, coolingMs: 0 }
    const { deadlineMs } = config
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
    const own = (await limitsOf(input, init)).slice(0, 1)
    return input === undefined ? [...cooldowns.known(), ...own] : own
  }

  return Object.assign(call, {
    status,
    cooldowns: {
      list: async (...given) => cooldowns.list(await keysOf(...given)),
      lift: async (...given) => cooldowns.lift(await keysOf(...given)),
    } satisfies OutboundCooldowns as OutboundCooldowns,
  })
}

/** Why a call has no turn yet: the rest of a cooldown, or a limit without a free slot. */
type Obstacle = { coolMs: number } | { slot: PolicyLimit }

/**
 * Tells what a refused call can wait for.
 * @param restMs the rest of its wait
 * @throws {OutboundError} if there is nothing
 */
function obstacleOf(
  limits: PolicyLimit[],
  { decision, error }: Outcome,
  restMs: number,
  waitMs: number,
): Obstacle {
  const { fallback, retryAfterMs } = decision
  if (fallback === 'deny') {
    const message = `the store did not answer (${error!.code})`
    throw new OutboundError('store-error', message, null, { cause: error })
  }
  const coolMs = bannedIn(decision.limits)
  if (coolMs > 0) return { coolMs }
  if (retryAfterMs === null) {
    const message = 'the cost of the call is above the limit: it never has a turn'
    throw new OutboundError('too-large', message, null)
  }
  const refusing = decision.limits.filter(({ allowed }) => !allowed)
  const full = refusing.find(({ unit }) => unit === 'concurrent-requests')
  if (!full) throw tooLate(retryAfterMs, waitMs)
  const turns = refusing.filter(({ unit }) => unit !== 'concurrent-requests')
  const turnMs = Math.max(0, ...turns.map((one) => one.retryAfterMs!))
  if (turnMs > restMs) throw tooLate(turnMs, waitMs)
  return { slot: limits.find(({ policy }) => policy.name === full.policy)! }
}

const tooLate = (turnMs: number, waitMs: number): OutboundError =>
  new OutboundError(
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
