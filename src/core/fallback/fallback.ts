/** The outermost layer of one database: if it does not answer, `onStoreError` of the policies does. Only this layer knows late replies. */
import type { Fallback } from '../base/decision.ts'
import { asStoreError, NOT_SENT, StoreError } from '../base/errors.ts'
import { whenAllKnown } from '../base/when-known.ts'
import { Timeout } from '../connection/deadline.ts'
import {
  type Correction,
  type Limit,
  type OnRefund,
  REFUND_MS,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreRequest,
  type StoreResult,
  type StoreState,
  storeBy,
} from '../connection/store.ts'
import type { LocalStore } from './local.ts'

export interface FallbackOptions {
  /** Decides policies with `onStoreError: 'local'`. Undefined without one. */
  local: LocalStore | undefined
  /** Remembers refusals. Defaults to none. */
  denialCache?: Denials | undefined
  /** Receives each error of the database that `onStoreError` answers. */
  onStoreError: (error: StoreError) => void
  /** Called after the refund of a late charge. */
  onRefund: OnRefund
  /** True if the local store decides every policy, because there is no database. Defaults to false. */
  isLocal?: boolean
}

export interface Denials {
  keep(limit: Limit, state: StoreState, decidedAt: number, sentAt: number, receivedAt: number): void
}

/** The limits that a call has charged, each with the time of its charge, ms since the epoch. */
type Charged = Map<Limit, number>

/** A store that answers calls with the option `fallback` by `onStoreError` of their policies if `store` fails. */
export function withFallback(
  store: Store,
  { local, denialCache, onStoreError, onRefund, isLocal = false }: FallbackOptions,
): Store {
  /** Remembers a reply, in time or late: its refusals in the denial cache, and its states in the local store. */
  function learn(
    requests: StoreRequest[],
    { decidedAt, states, leased, replayed }: StoreReply,
    sentAt: number,
    { idempotency }: StoreOptions,
  ): void {
    const receivedAt = Date.now()
    for (let index = 0; index < requests.length; index += 1) {
      const { mode, limits } = requests[index]!
      const own = states[index]!
      const isDenial = mode === 'take' && !leased && !idempotency
      for (let at = 0; at < limits.length; at += 1) {
        const limit = limits[at]!
        const state = own[at]!
        const { mode, onStoreError } = limit.terms
        if (mode !== 'enforce') continue
        if (isDenial && !state.allowed)
          denialCache?.keep(limit, state, decidedAt, sentAt, receivedAt)
        // A replay has the states of the first call.
        if (replayed || onStoreError !== 'local') continue
        local?.learn(limit, state, state.decidedAt ?? decidedAt, receivedAt)
      }
    }
  }

  async function answer(
    requests: StoreRequest[],
    error: StoreError,
    sentAt: number,
    options: StoreOptions,
  ): Promise<StoreReply> {
    if (!isLocal) onStoreError(error)
    const decidedAt = Date.now()
    const states: StoreState[][] = []
    for (const request of requests) states.push(await answerOne(request, error))
    const late = chargedLate(requests, error, sentAt, options)
    const isAdmitted = requests.every(
      ({ mode }, index) => mode !== 'take' || states[index]!.every(isAllowed),
    )
    // With an idempotency key a late charge stays: a repeated call gets the charged reply.
    if (late && !options.idempotency) {
      if (isAdmitted) {
        for (const [index, { limits }] of requests.entries())
          for (const [at, limit] of limits.entries())
            states[index]![at]!.fallback!.late = late.then(({ charged }) => charged.get(limit))
      } else {
        const refunding = late.then(({ unmatched }) => refundAll(unmatched, options))
        options.waitUntil?.(refunding)
      }
    }
    return { decidedAt, states }
  }

  /** `deny` refuses the request; otherwise the local store decides the limits with `local`. Shadow policies are ignored. */
  async function answerOne({ mode, limits }: StoreRequest, error: StoreError) {
    const by = limits.map(({ terms: { mode, onStoreError = 'allow' } }): Fallback => {
      if (mode !== 'enforce') return 'allow'
      return isLocal ? 'local' : onStoreError
    })
    const counted = by.includes('deny') ? [] : limits.filter((_, index) => by[index] === 'local')
    const request = { mode: mode === 'peek' ? mode : 'take', limits: counted } as const
    const { decidedAt = 0, states = [[]] } =
      counted.length > 0 ? await local!.decide([request]) : {}
    const answers = states[0]!
    const isCharged = request.mode === 'take' && answers.every(isAllowed)
    return limits.map((limit, index): StoreState => {
      const own = by[index]!
      const state = answers[counted.indexOf(limit)]
      const fallback = { by: own, error, ...(state && isCharged && { localAt: decidedAt }) }
      return { ...(state ?? (own === 'deny' ? DENIED : ALLOWED)), fallback }
    })
  }

  /** The charges of a call that may still be decided, or `undefined` if there can be none. Never rejects. */
  function chargedLate(
    requests: StoreRequest[],
    error: StoreError,
    sentAt: number,
    options: StoreOptions,
  ): Promise<{ charged: Charged; unmatched: Charged }> | undefined {
    const isTake = requests.some(({ mode }) => mode === 'take')
    const slots = requests.flatMap(({ limits }) =>
      limits.filter(({ slot, cost }) => slot && cost > 0),
    )
    const late = error instanceof Timeout ? error.late : undefined
    if (!isTake || !(late || (slots.length > 0 && mayHaveRun(error)))) return undefined
    return Promise.resolve<StoreResult>(late ?? error).then((reply) => {
      // Without a reply slots may be taken: a release by their id is harmless.
      let charged: Charged = new Map()
      if (!(reply instanceof StoreError)) {
        learn(requests, reply, sentAt, options)
        charged = chargedIn(requests, reply)
      } else if (mayHaveRun(reply)) charged = new Map(slots.map((limit) => [limit, 0]))
      // A charge that matches local units of another request keeps them, so a refused request refunds only the rest.
      const unmatched = [...charged].filter(([limit]) => !local?.matchLateCharge(limit))
      return { charged, unmatched: new Map(unmatched) }
    })
  }

  async function refundAll(charged: Charged, { waitUntil }: StoreOptions): Promise<void> {
    if (charged.size === 0) return
    const requests = [...charged].map(
      ([limit, decidedAt]): Correction => ({ mode: 'refund', limits: [limit], decidedAt }),
    )
    const error = await store
      .decide(requests, { deadlineMs: REFUND_MS, waitUntil })
      .then(() => undefined, asStoreError)
    const subjects = [...charged.keys()].map(({ subject }) => subject)
    onRefund(subjects, error) // also after an error: the refund may have been applied
  }

  async function correctFallen(requests: Correction[], options: StoreOptions): Promise<void> {
    const late: StoreRequest[] = []
    // At once: late replies may take seconds.
    for (const { fallback, ...request } of requests) {
      const { localAt } = fallback!
      if (localAt !== undefined) await local!.decide([{ ...request, decidedAt: localAt }])
    }
    for (const { fallback, ...request } of requests) {
      const decidedAt = await fallback!.late
      if (decidedAt !== undefined) late.push({ ...request, decidedAt })
    }
    if (late.length > 0) await store.decide(late, options)
  }

  /** Corrects charges. Those that `onStoreError` has answered are in the local store, and in the database if it has charged them late. */
  async function correct(requests: StoreRequest[], options: StoreOptions): Promise<StoreReply> {
    const others = requests.filter((request) => !isFallen(request))
    const deciding = others.length > 0 ? store.decide(others, options) : undefined
    const correcting = correctFallen(requests.filter(isFallen), options)
    // Waits for both also after an error, so that `waitUntil` of the caller covers both.
    for (const one of await Promise.allSettled([deciding, correcting]))
      if (one.status === 'rejected') throw one.reason
    const states = requests.map(({ limits }) => limits.map(() => ALLOWED))
    return { decidedAt: Date.now(), states }
  }

  async function decideEach(
    lists: StoreRequest[][],
    options: StoreOptions,
  ): Promise<StoreResult[]> {
    if (lists.some((list) => list.some(isFallen))) {
      const decideOne = async (list: StoreRequest[]) => (await decideEach([list], options))[0]!
      return Promise.all(
        lists.map((list) =>
          list.some(isFallen) ? correct(list, options).catch(asStoreError) : decideOne(list),
        ),
      )
    }
    const sentAt = Date.now()
    return store.decideEach(lists, options).then((replies) =>
      whenAllKnown(
        replies.map((reply, index) => {
          const requests = lists[index]!
          if (!(reply instanceof StoreError)) learn(requests, reply, sentAt, options)
          else if (mayAnswer(reply, options)) return answer(requests, reply, sentAt, options)
          return reply
        }),
      ),
    )
  }
  return storeBy(decideEach)
}

const isAllowed = ({ allowed }: StoreState) => allowed

const isFallen = (request: StoreRequest): request is Correction =>
  'fallback' in request && request.fallback !== undefined

const mayAnswer = ({ code }: StoreError, { fallback }: StoreOptions) =>
  fallback && code !== 'idempotency-conflict'

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/** The limits that a reply to takes and their follows has charged. */
function chargedIn(requests: StoreRequest[], { decidedAt, states }: StoreReply): Charged {
  const charged: Charged = new Map()
  let passes = true
  for (const [index, { mode, limits }] of requests.entries()) {
    const own = states[index]!
    if (mode === 'take') passes = own.every(isAllowed)
    if ((mode !== 'take' && mode !== 'follow') || !passes || !own.every(isAllowed)) continue
    for (const [at, limit] of limits.entries())
      if (limit.cost > 0) charged.set(limit, own[at]!.decidedAt ?? decidedAt)
  }
  return charged
}

const ALLOWED: StoreState = {
  allowed: true,
  remaining: 0,
  retryAfterMs: 0,
  resetAfterMs: 0,
  nextAfterMs: 0,
}
const DENIED: StoreState = { ...ALLOWED, allowed: false, retryAfterMs: null }
