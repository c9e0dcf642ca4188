/** A client of the decision API (docs/reference/decision-api.md) for any runtime with `fetch`: Node, Bun, Deno, browsers, Workers. */

import type { Ask, KeyLimit, RequestDescription } from '../api/schema.ts'
import type { Decision, LimitStatus } from '../core/base/decision.ts'
import { HELD_MS } from '../core/base/held.ts'
import { whenAborted } from '../core/base/sleep.ts'
import type { BanPage } from '../features/bans/endpoint.ts'
import type { OverrideList } from '../features/overrides/endpoints.ts'
import { checkCost, checkKey, formOf, mistake, optionsOf, wrong } from '../limits/check.ts'
import type {
  KeyValues,
  LimitDecision,
  LimitOptions,
  Limits,
  RefundOptions,
} from '../limits/door.ts'
import { answerOf, decisionOf, statusOf } from './answer.ts'
import { Decided } from './decided.ts'
import { ApiError } from './error.ts'
import { cut, described, keyPath } from './sent.ts'

export type { RequestDescription } from '../api/schema.ts'
export type { Decision, LimitState, LimitStatus, Reason } from '../core/base/decision.ts'
export type { KeyValue, KeyValues, LimitDecision, LimitKey, Limits } from '../limits/door.ts'
export { describeRequest } from './describe.ts'
export { ApiError, type ApiErrorCode, type Problem } from './error.ts'

export interface ClientOptions {
  /** The origin of the Worker, such as `https://limits.example.com`. The path is ignored. */
  url: string | URL
  /** One of the tokens in `SLUICE_API_TOKEN`; for `reset`, `overrides` and `bans`, in `SLUICE_OPERATE_TOKEN`. A token may be in both. */
  token: string
  /** The time limit of a call besides its `waitMs`, in ms. Defaults to 1000. A call without `waitMs` waits for its turn at most half of it. */
  deadlineMs?: number
  /**
   * The fallback if the decision API gives no decision for any reason. Defaults to `allow`. `allow` and `deny` log a warning to the
   * console, once for each kind of failure. With `allow`, a described request that the decision API refuses as invalid (400, 413, 422) is
   * denied, because its client has chosen that request. A function may log by itself, and may throw.
   */
  onError?:
    | 'allow'
    | 'deny'
    | 'throw'
    | ((error: ApiError, ask: Ask) => Decision | 'allow' | 'deny')
  /** Replaces the global `fetch`, for example with that of a service binding. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions extends LimitOptions {
  /** 1 to 255 visible ASCII characters. For 60 s, a repeated call gets the same answer and charges nothing. */
  idempotencyKey?: string | undefined
  /** The longest time for which the call may wait for its turn (`wait` of a policy), in ms. Defaults to 500, and at most to half of `deadlineMs`. */
  waitMs?: number | undefined
  /** Aborts the call. It then rejects with the reason of the signal; `onError` is not used. */
  signal?: AbortSignal | undefined
}

/**
 * Limits of a gateway, over HTTP. A call does not retry, because a failed call may have charged. A mistake in a name, a key, a plan or a cost
 * is a `TypeError`. If the gateway gives no decision, `onError` decides; `reset` and `refund` reject with an `ApiError`, and `settle` logs
 * the error.
 */
export interface ApiClient extends Limits<string, CallOptions> {
  /** Decides a request by all policies that apply to it, as in the gateway. */
  decide(
    request: RequestDescription,
    options?: CallOptions & { mode?: 'take' | 'peek' },
  ): Promise<LimitDecision>
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
 * const quota = createClient({ url: 'https://limits.example.com', token: env.SLUICE_API_TOKEN })
 * const { allowed } = await quota.limit('per-user', user.id)
 */
export function createClient(options: ClientOptions): ApiClient {
  const { deadlineMs = 1000 } = options
  const call = caller({ ...options, deadlineMs })
  const { fallback, warned } = createFallback(options.onError ?? 'allow')

  /** Sends an ask, and returns its decision or the fallback. */
  async function decided(
    name: string,
    ask: Ask,
    { cost, waitMs, signal, idempotencyKey }: CallOptions,
  ): Promise<LimitDecision> {
    checkCost(name, cost)
    const mostMs = Math.floor(deadlineMs / 2)
    // Without an answer in time `onError: 'allow'` would let every call pass that waits.
    const ownMs = waitMs ?? (ask.mode === 'peek' || mostMs >= HELD_MS ? undefined : mostMs)
    const deadline = AbortSignal.timeout(deadlineMs + (waitMs ?? 0))
    const whole = { ...ask, cost, waitMs: ownMs }
    try {
      const sending = { signal, idempotencyKey, name: 'request' in ask ? undefined : name }
      const { body, headers } = await call('decide', whole, sending, deadline)
      const decision = decisionOf(body)
      const { allowed, decidedAt } = decision
      const hasCharged = allowed && decidedAt !== undefined && ask.mode !== 'peek'
      const { mode: _, ...target } = ask
      const settle = (used: number | undefined) =>
        jsonOf('settle', { ...target, used, decision })
          .then(statusOf)
          .then(() => {}, warned)
      return new Decided(decision, headers, hasCharged ? settle : undefined)
    } catch (error) {
      return new Decided(fallback(error, ask))
    }
  }

  function byName(name: 'limit' | 'peek', given: unknown[]) {
    const [all, { plan, ...rest }] = formOf<string, CallOptions>(name, given, OVER_HTTP)
    const limits = all.map(([policy, key]) => [policy, sendable(name, policy, key)] as const)
    const [[policy, key] = []] = limits
    const about = Array.isArray(given[0]) ? { limits } : { policy, key }
    return decided(name, { ...about, plan, mode: name === 'peek' ? name : undefined } as Ask, rest)
  }

  const jsonOf = async (...given: Parameters<typeof call>) => (await call(...given)).body
  const limitOf = async (policy: string, key: KeyValues, body?: KeyLimit, method?: string) =>
    statusOf(await jsonOf(`${keysOf(policy)}/${keyPath(key)}/limit`, body, { method }))

  return {
    limit: async (...given: unknown[]) => byName('limit', given),
    peek: async (...given: unknown[]) => byName('peek', given),
    decide: async (request, { mode, ...rest } = {}) =>
      decided('decide', { request: described(request), ...(mode && { mode }) }, rest),
    async reset(policy, key) {
      const sent = { key: sendable('reset', policy, key) }
      return statusOf(await jsonOf(`${pathOf(policy)}/reset`, sent, { name: 'reset' }))
    },
    async refund(policy, key, options) {
      const { cost, plan, decidedAt, slot } = optionsOf<RefundOptions>('refund', options)
      checkCost('refund', cost)
      const sent = { policy, key: sendable('refund', policy, key), cost, plan, decidedAt, slot }
      return statusOf(await jsonOf('refund', sent, { name: 'refund' }))
    },
    overrides: {
      set: (policy, key, body) => limitOf(policy, key, body, 'PUT'),
      get: (policy, key) => limitOf(policy, key),
      remove: (policy, key) => limitOf(policy, key, undefined, 'DELETE'),
      list: (policy) => jsonOf(keysOf(policy)) as Promise<OverrideList>,
    },
    bans(policy, after) {
      const query = after === undefined ? '' : `?after=${encodeURIComponent(after)}`
      return jsonOf(`${pathOf(policy)}/bans${query}`) as Promise<BanPage>
    },
  }
}

/** The key of a call as it is sent. @throws {TypeError} if the key or the name of its policy is invalid */
function sendable(call: string, policy: unknown, key: KeyValues): KeyValues {
  checkKey(call, key)
  if (typeof policy === 'string') return cut(key)
  throw mistake(call, 'policy', 'the name of a policy', policy)
}

/** The options of calls that only this carrier has. */
const OVER_HTTP = ['waitMs', 'idempotencyKey']

const pathOf = (policy: string) => `policies/${encodeURIComponent(policy)}`
const keysOf = (policy: string) => `${pathOf(policy)}/keys`

interface Sending extends Pick<CallOptions, 'idempotencyKey' | 'signal'> {
  /** Defaults to POST, and without a body to GET. */
  method?: string | undefined
  /** The function whose arguments the body has. Its mistakes are a `TypeError`. */
  name?: string | undefined
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

  return async (
    path: string,
    body?: unknown,
    { signal, idempotencyKey: key, method = body ? 'POST' : 'GET', name }: Sending = {},
    deadline = AbortSignal.timeout(deadlineMs),
  ) => {
    signal?.throwIfAborted()
    const abort = signal ? AbortSignal.any([signal, deadline]) : deadline
    async function answer() {
      const response = await fetch(new URL(`/_sluice/v1/${path}`, url).href, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          ...(key !== undefined && { 'Idempotency-Key': key }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'manual', // A redirect would send the token to another host.
        signal: abort,
      })
      return { body: await answerOf(response), headers: response.headers }
    }
    try {
      // A custom `fetch` may ignore the signal.
      const aborted = whenAborted(abort).then(() => Promise.reject(abort.reason))
      return await Promise.race([answer(), aborted])
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof ApiError) throw mistakeIn(error, name) ?? error
      throw deadline.aborted
        ? new ApiError('timeout', `no answer within ${deadlineMs} ms`)
        : new ApiError('unreachable', 'the call failed', { cause: error })
    }
  }
}

function isApiUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && !username && !password
}

/** The mistake of a call by name, from the problem document of its body. */
function mistakeIn({ status, problem }: ApiError, name: string | undefined) {
  const [first] = problem?.errors ?? []
  const isOfCall = status === 422 && first && first.path !== 'Idempotency-Key'
  return name && isOfCall ? wrong(name, first) : undefined
}

/** Creates the function that applies `onError`. It rethrows all errors except ApiError, such as the reason of the caller's signal. */
function createFallback(onError: NonNullable<ClientOptions['onError']>) {
  const logged = new Set<string>()
  function warned(error: unknown): void {
    const { code, status, message } = error as ApiError
    const kind = `${code} ${status}`
    const rule = typeof onError === 'string' ? `onError: ${onError}; ` : ''
    if (!logged.has(kind)) console.warn(`sluice: ${message} (${rule}logged once)`)
    logged.add(kind)
  }
  function fallback(error: unknown, ask: Ask): Decision {
    if (!(error instanceof ApiError) || onError === 'throw') throw error
    if (typeof onError === 'function') {
      const answer = onError(error, ask)
      return typeof answer === 'string' ? withoutApi(answer) : answer
    }
    warned(error)
    const isInvalid = 'request' in ask && [400, 413, 422].includes(error.status ?? 0)
    return withoutApi(isInvalid ? 'deny' : onError)
  }
  return { fallback, warned }
}

const withoutApi = (answer: 'allow' | 'deny'): Decision => ({
  allowed: answer === 'allow',
  reason: 'store-error',
  fallback: answer,
  retryAfterMs: answer === 'allow' ? 0 : null,
  limits: [],
})
