/** A client of the decision API (docs/reference/decision-api.md) for any runtime with `fetch`: Node, Bun, Deno, browsers, Workers. */

import type { Ask, KeyLimit, KeyValues } from '../api/schema.ts'
import type { Decision, LimitStatus } from '../core/base/decision.ts'
import type { BanPage } from '../features/bans/endpoint.ts'
import type { OverrideList } from '../features/overrides/endpoints.ts'
import { answerOf, decisionOf, notTheApi } from './answer.ts'
import { ApiError } from './error.ts'
import { checkCost, keyPath, lists, longestWait, sent, withWait } from './sent.ts'

export type {
  Ask,
  ByPolicy,
  ByRequest,
  KeyLimit,
  KeyValue,
  KeyValues,
  RefundAsk,
  RequestDescription,
} from '../api/schema.ts'
export type { Decision, LimitState, LimitStatus, Reason } from '../core/base/decision.ts'
export type { BanPage } from '../features/bans/endpoint.ts'
export type { OverrideList } from '../features/overrides/endpoints.ts'
export { describeRequest } from './describe.ts'
export { ApiError, type ApiErrorCode, type Problem } from './error.ts'

export interface ClientOptions {
  /** The origin of the Worker, such as `https://limits.example.com`. The path is ignored. */
  url: string | URL
  /** One of the tokens in `SLUICE_API_TOKEN`; for `overrides` and `bans`, in `SLUICE_OPERATE_TOKEN`. */
  token: string
  /**
   * The time limit of a call, in ms. Defaults to 1000. A call whose asks have `waitMs` may take so much longer. Other calls tell the API to wait
   * for at most half of this time, all calls for one list together.
   */
  deadlineMs?: number
  /**
   * The fallback if the decision API gives no decision for any reason. Defaults to `allow`. `allow` and `deny` log a warning to the
   * console, once for each kind of failure. With `allow`, an ask by a request that the decision API refuses as invalid (400, 413, 422) is denied,
   * because its client has chosen that request. A function may log by itself, and may throw.
   */
  onError?:
    | 'allow'
    | 'deny'
    | 'throw'
    | ((error: ApiError, ask: Ask) => Decision | 'allow' | 'deny')
  /** Replaces the global `fetch`, for example with that of a service binding. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions {
  /** 1 to 255 visible ASCII characters. For 60 s, a repeated call gets the same answer and charges nothing. */
  idempotencyKey?: string
  /** Aborts the call. It then rejects with the reason of the signal; `onError` is not used. */
  signal?: AbortSignal
}

export interface ApiClient {
  /**
   * Decides and charges one ask, or a list of asks in one call for each 100 asks or 64 KiB. Does not retry, because a failed call may
   * have charged.
   */
  decide(ask: Ask, options?: CallOptions): Promise<Decision>
  decide(asks: readonly Ask[], options?: CallOptions): Promise<Decision[]>
  /** Decides without a charge. */
  peek(ask: Ask, options?: CallOptions): Promise<Decision>
  peek(asks: readonly Ask[], options?: CallOptions): Promise<Decision[]>
  /**
   * Refunds the charge of a decision, or `cost` units of it, and releases its slots.
   * @returns the status of the limits. `undefined` if nothing was charged (a refusal, a peek, a fallback), or if the call failed and
   *   `onError` did not throw
   */
  refund(
    ask: Ask,
    decision: Decision,
    options?: CallOptions & { cost?: number },
  ): Promise<LimitStatus | undefined>
  /** Limits of single keys, for policies with `overrides`. Each call rejects with an ApiError if it fails; `onError` is not used. */
  overrides: {
    /** Sets the limit of a key for a time. */
    set(policy: string, key: KeyValues, limit: KeyLimit): Promise<LimitStatus>
    /** The limit in force. It has `overriddenForMs` if it was set for the key. */
    get(policy: string, key: KeyValues): Promise<LimitStatus>
    /** Removes the limit that was set for a key. */
    remove(policy: string, key: KeyValues): Promise<LimitStatus>
    /** All limits of a policy that were set for single keys. */
    list(policy: string): Promise<OverrideList>
  }
  /**
   * A page of the keys that a policy with `penalty.list` bans now. Rejects with an ApiError; `onError` is not used.
   * @param after `next` of the page before. Defaults to the first page
   */
  bans(policy: string, after?: string): Promise<BanPage>
}

/**
 * Creates a client of the decision API.
 * @throws {TypeError} if the URL, the token or the deadline is invalid
 * @example
 * const api = createClient({ url: 'https://limits.example.com', token: env.SLUICE_API_TOKEN })
 * const { allowed } = await api.decide({ policy: 'per-user', key: user.id })
 */
export function createClient(options: ClientOptions): ApiClient {
  const { deadlineMs = 1000 } = options
  const call = caller({ ...options, deadlineMs })
  const fallback = createFallback(options.onError ?? 'allow')

  async function one(ask: Ask, options?: CallOptions): Promise<Decision> {
    checkCost(ask.cost, 'cost')
    try {
      const deadline = AbortSignal.timeout(deadlineMs + longestWait([ask]))
      return decisionOf(await call('decide', withWait(sent(ask), deadlineMs), options, deadline))
    } catch (error) {
      return fallback(error, ask)
    }
  }

  async function list(asks: Ask[], shareMs: number, options: CallOptions, deadline: AbortSignal) {
    try {
      const body = asks.map((ask) => withWait(sent(ask), shareMs))
      const answers = await call('decide', body, options, deadline)
      if (!Array.isArray(answers) || answers.length !== asks.length) throw notTheApi()
      return answers.map(decisionOf)
    } catch (error) {
      return asks.map((ask) => fallback(error, ask))
    }
  }

  async function many(asks: readonly Ask[], options: CallOptions = {}): Promise<Decision[]> {
    for (const [index, { cost }] of asks.entries()) checkCost(cost, `[${index}].cost`)
    const decisions: Decision[] = []
    const parts = lists(asks)
    const waitMs = parts.reduce((sum, part) => sum + longestWait(part), 0)
    const deadline = AbortSignal.timeout(deadlineMs + waitMs) // One deadline for all calls.
    for (const [index, part] of parts.entries()) {
      const { idempotencyKey: key } = options
      // Each list is another body, which needs another key.
      const own = key !== undefined && index > 0 && { idempotencyKey: `${key}.${index + 1}` }
      decisions.push(
        ...(await list(part, deadlineMs / parts.length, { ...options, ...own }, deadline)),
      )
    }
    return decisions
  }

  const isOne = (asks: Ask | readonly Ask[]): asks is Ask => !Array.isArray(asks)
  // biome-ignore lint/suspicious/noExplicitAny: ApiClient declares the overloads
  const decide = (asks: Ask | readonly Ask[], options?: CallOptions): Promise<any> =>
    isOne(asks) ? one(asks, options) : many(asks, options)
  const statusOf = (policy: string, key: KeyValues, body: unknown, method: string) =>
    call(`${keysOf(policy)}/${keyPath(key)}/limit`, body, { method }) as Promise<LimitStatus>
  const peeking = (ask: Ask): Ask => ({ ...ask, mode: 'peek' })

  return {
    decide,
    peek: (asks: Ask | readonly Ask[], options?: CallOptions) =>
      decide(isOne(asks) ? peeking(asks) : asks.map(peeking), options),
    async refund(ask, { allowed, decidedAt, slot }, { cost = ask.cost, ...options } = {}) {
      if (!allowed || decidedAt === undefined || ask.mode === 'peek') return undefined
      checkCost(cost, 'cost')
      const { mode: _, waitMs: __, ...target } = sent(ask)
      try {
        return (await call('refund', { ...target, cost, decidedAt, slot }, options)) as LimitStatus
      } catch (error) {
        fallback(error, ask)
        return undefined
      }
    },
    overrides: {
      set: (policy, key, body) => statusOf(policy, key, body, 'PUT'),
      get: (policy, key) => statusOf(policy, key, undefined, 'GET'),
      remove: (policy, key) => statusOf(policy, key, undefined, 'DELETE'),
      list: (policy) => call(keysOf(policy), undefined, { method: 'GET' }) as Promise<OverrideList>,
    },
    bans(policy, after) {
      const query = after === undefined ? '' : `?after=${encodeURIComponent(after)}`
      const path = `${pathOf(policy)}/bans${query}`
      return call(path, undefined, { method: 'GET' }) as Promise<BanPage>
    },
  }
}

const pathOf = (policy: string) => `policies/${encodeURIComponent(policy)}`
const keysOf = (policy: string) => `${pathOf(policy)}/keys`

interface Sending extends CallOptions {
  /** Defaults to POST. */
  method?: string
}

/** Creates a function that makes one call. It returns the answer, or rejects with an ApiError. */
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

  async function send(
    path: string,
    body: unknown,
    { idempotencyKey: key, method = 'POST' }: Sending,
    signal: AbortSignal,
  ) {
    const response = await fetch(new URL(`/_sluice/v1/${path}`, url).href, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...(key !== undefined && { 'Idempotency-Key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual', // A redirect would send the token to another host.
      signal,
    })
    return answerOf(response)
  }

  return async (
    path: string,
    body: unknown,
    options: Sending = {},
    deadline = AbortSignal.timeout(deadlineMs),
  ) => {
    const { signal } = options
    signal?.throwIfAborted()
    const abort = signal ? AbortSignal.any([signal, deadline]) : deadline
    try {
      // A custom `fetch` may ignore the signal.
      return await Promise.race([send(path, body, options, abort), aborted(abort)])
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

/** Creates the function that applies `onError`. It rethrows all errors except ApiError, such as the reason of the caller's signal. */
function createFallback(onError: NonNullable<ClientOptions['onError']>) {
  const logged = new Set<string>()
  return (error: unknown, ask: Ask): Decision => {
    if (!(error instanceof ApiError) || onError === 'throw') throw error
    if (typeof onError === 'function') {
      const answer = onError(error, ask)
      return typeof answer === 'string' ? withoutApi(answer) : answer
    }
    const kind = `${error.code} ${error.status}`
    if (!logged.has(kind))
      console.warn(`sluice: ${error.message} (onError: ${onError}; logged once)`)
    logged.add(kind)
    const isInvalid = 'request' in ask && [400, 413, 422].includes(error.status ?? 0)
    return withoutApi(isInvalid ? 'deny' : onError)
  }
}

const withoutApi = (answer: 'allow' | 'deny'): Decision => ({
  allowed: answer === 'allow',
  reason: 'store-error',
  fallback: answer,
  retryAfterMs: answer === 'allow' ? 0 : null,
  limits: [],
})
