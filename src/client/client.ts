/** A client of the decision API (docs/reference/decision-api.md) for whoever has `fetch`: Node, Bun, Deno, browsers, Workers. */

import type { Ask } from '../api/schema.ts'
import type { Decision, LimitStatus } from '../base/decision.ts'
import { answerOf, decisionOf, notTheApi } from './answer.ts'
import { ApiError } from './error.ts'
import { lists, sent } from './sent.ts'

export type {
  Ask,
  ByPolicy,
  ByRequest,
  KeyValue,
  KeyValues,
  RefundAsk,
  RequestDescription,
} from '../api/schema.ts'
export type { Decision, LimitState, LimitStatus, Reason } from '../base/decision.ts'
export { describeRequest } from './describe.ts'
export { ApiError, type ApiErrorCode, type Problem } from './error.ts'

export interface ClientOptions {
  /** Where the Worker is, such as `https://limits.example.com`; the path is the API's own. */
  url: string | URL
  /** One of those in `SLUICE_API_TOKEN`. */
  token: string
  /** Milliseconds until a call is given up. Default 1000. */
  deadlineMs?: number
  /**
   * What is answered where the decision API gives no decision, whatever the reason. Default `allow`.
   * `allow` and `deny` tell it on the console, once for each kind of failure; a function tells it where it likes, and may throw.
   */
  onError?:
    | 'allow'
    | 'deny'
    | 'throw'
    | ((error: ApiError, ask: Ask) => Decision | 'allow' | 'deny')
  /** Another `fetch`, such as that of a service binding. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions {
  /** 1 to 255 visible ASCII characters: for 60 s a repeat gets the same answer, and is charged once. */
  idempotencyKey?: string
  /** Gives up earlier: the call rejects with its reason, whatever `onError` says. */
  signal?: AbortSignal
}

export interface ApiClient {
  /**
   * Decides and charges one ask, or a list, in one call for each 100 of them or 64 KiB. Never repeated by itself, since it may have
   * counted.
   */
  decide(ask: Ask, options?: CallOptions): Promise<Decision>
  decide(asks: readonly Ask[], options?: CallOptions): Promise<Decision[]>
  /** The same, charging nothing. */
  peek(ask: Ask, options?: CallOptions): Promise<Decision>
  peek(asks: readonly Ask[], options?: CallOptions): Promise<Decision[]>
  /**
   * Refunds what a decision charged, or `cost` of it, and releases the slots it holds.
   * @returns how the limits stand; `undefined` where nothing was charged (refused, only peeked at, not decided by the store), and
   *   where the call failed, unless `onError` is `throw`
   */
  refund(
    ask: Ask,
    decision: Decision,
    options?: CallOptions & { cost?: number },
  ): Promise<LimitStatus | undefined>
}

/**
 * Makes a client of one api.
 * @throws {TypeError} where the URL, the token or the deadline is none
 * @example
 * const api = createClient({ url: 'https://limits.example.com', token: env.SLUICE_API_TOKEN })
 * const { allowed } = await api.decide({ policy: 'per-user', key: user.id })
 */
export function createClient(options: ClientOptions): ApiClient {
  const { deadlineMs = 1000 } = options
  const call = caller({ ...options, deadlineMs })
  const fallback = createFallback(options.onError ?? 'allow')

  async function one(ask: Ask, options?: CallOptions): Promise<Decision> {
    try {
      return decisionOf(await call('decide', sent(ask), options))
    } catch (error) {
      return fallback(error, ask)
    }
  }

  async function list(asks: Ask[], options: CallOptions, deadline: AbortSignal) {
    try {
      const answers = await call('decide', asks.map(sent), options, deadline)
      if (!Array.isArray(answers) || answers.length !== asks.length) throw notTheApi()
      return answers.map(decisionOf)
    } catch (error) {
      return asks.map((ask) => fallback(error, ask))
    }
  }

  async function many(asks: readonly Ask[], options: CallOptions = {}): Promise<Decision[]> {
    const decisions: Decision[] = []
    const deadline = AbortSignal.timeout(deadlineMs) // one for all
    for (const [index, some] of lists(asks).entries()) {
      const { idempotencyKey: key } = options
      // A second list is another body.
      const own = key !== undefined && index > 0 && { idempotencyKey: `${key}.${index + 1}` }
      decisions.push(...(await list(some, { ...options, ...own }, deadline)))
    }
    return decisions
  }

  const isOne = (asks: Ask | readonly Ask[]): asks is Ask => !Array.isArray(asks)
  // biome-ignore lint/suspicious/noExplicitAny: one answer for one ask, a list for a list, as the interface says
  const decide = (asks: Ask | readonly Ask[], options?: CallOptions): Promise<any> =>
    isOne(asks) ? one(asks, options) : many(asks, options)
  const peeking = (ask: Ask): Ask => ({ ...ask, mode: 'peek' })

  return {
    decide,
    peek: (asks: Ask | readonly Ask[], options?: CallOptions) =>
      decide(isOne(asks) ? peeking(asks) : asks.map(peeking), options),
    async refund(ask, { allowed, decidedAt, slot }, { cost = ask.cost, ...options } = {}) {
      if (!allowed || decidedAt === undefined || ask.mode === 'peek') return undefined
      const { mode: _, ...whose } = sent(ask)
      try {
        return (await call('refund', { ...whose, cost, decidedAt, slot }, options)) as LimitStatus
      } catch (error) {
        fallback(error, ask)
        return undefined
      }
    },
  }
}

/** Makes a function that calls the decision API once: its answer, or an ApiError. */
function caller({
  url,
  token,
  deadlineMs,
  fetch = (url, init) => globalThis.fetch(url, init),
}: ClientOptions & { deadlineMs: number }) {
  if (!isApiUrl(String(url)))
    throw new TypeError('url: expected an http or https URL without user name and password')
  if (typeof token !== 'string' || !/^[!-~]{16,}$/.test(token))
    throw new TypeError('token: expected at least 16 visible ASCII characters')
  if (!Number.isInteger(deadlineMs) || deadlineMs < 1 || deadlineMs >= 2 ** 31)
    throw new TypeError('deadlineMs: expected whole milliseconds, at least 1')

  async function ask(path: string, body: unknown, key: string | undefined, signal: AbortSignal) {
    const response = await fetch(new URL(`/_sluice/v1/${path}`, url).href, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...(key !== undefined && { 'Idempotency-Key': key }),
      },
      body: JSON.stringify(body),
      redirect: 'manual', // nobody else is given the token
      signal,
    })
    return answerOf(response)
  }

  return async (
    path: string,
    body: unknown,
    { idempotencyKey, signal }: CallOptions = {},
    deadline = AbortSignal.timeout(deadlineMs),
  ) => {
    signal?.throwIfAborted()
    const over = signal ? AbortSignal.any([signal, deadline]) : deadline
    try {
      // A `fetch` of the caller's need not look at the signal.
      return await Promise.race([ask(path, body, idempotencyKey, over), aborted(over)])
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof ApiError) throw error
      throw deadline.aborted
        ? new ApiError('timeout', `no answer within ${deadlineMs} ms`)
        : new ApiError('unreachable', 'the call failed', { cause: error })
    }
  }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

function isApiUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && !username && !password
}

/** Makes what answers for the decision API. What is no ApiError (the caller's own signal) is nobody's to answer. */
function createFallback(onError: NonNullable<ClientOptions['onError']>) {
  const told = new Set<string>()
  return (error: unknown, ask: Ask): Decision => {
    if (!(error instanceof ApiError) || onError === 'throw') throw error
    if (typeof onError === 'function') {
      const answer = onError(error, ask)
      return typeof answer === 'string' ? withoutApi(answer) : answer
    }
    const kind = `${error.code} ${error.status}`
    if (!told.has(kind)) console.warn(`sluice: ${error.message} (onError: ${onError}; told once)`)
    told.add(kind)
    return withoutApi(onError)
  }
}

const withoutApi = (answer: 'allow' | 'deny'): Decision => ({
  allowed: answer === 'allow',
  reason: 'store-error',
  fallback: answer,
  retryAfterMs: answer === 'allow' ? 0 : null,
  limits: [],
})
