/** `sluice/next`: a rate limiter for `proxy.ts` of Next.js. */
import type { Decision } from '../../core/base/decision.ts'
import type { AppOptions } from '../../core/config/options.ts'
import type { Limiter } from '../../core/feature.ts'
import { checkOf } from '../app/sluice.ts'
import { createKnowingLimiter } from './knowing-limiter.ts'
import { ofNext } from './lacks.ts'

/** The part of Next.js's `NextFetchEvent` that the limiter uses. */
export interface ProxyEvent {
  waitUntil(promise: Promise<unknown>): void
}

/** The result of a proxy function. Without a response the request passes. */
// biome-ignore lint/suspicious/noConfusingVoidType: the function may lack a return statement
type ProxyResult = Response | null | undefined | void

/** The function `proxy` of a `proxy.ts`. */
export type LimitedProxy<Context, Event> = (request: Context, event: Event) => Promise<Response>

/** Your own proxy function. It runs for requests that the limiter admits. */
export type AdmittedProxy<Context, Event> = (
  request: Context,
  event: Event,
  decision: Decision,
) => ProxyResult | Promise<ProxyResult>

/**
 * Creates the function `proxy` of a `proxy.ts` (`middleware` before Next.js 16). It answers 429 above a limit, and adds the `RateLimit`
 * fields to other responses. The argument of key functions is Next.js's request.
 * A proxy does not see the response of the page, and Next.js does not report the address of the connection. `clientAddress` is therefore a
 * header of a proxy in front of Next.js, with a number of `trustedProxies`.
 * @param proxy your own function, which may rewrite, redirect or answer an admitted request. Defaults to `NextResponse.next()`
 * @throws {ConfigError} immediately, if the configuration is invalid or needs the response of the page (`countOnly`, `cost.response`, `cost.usage`,
 * `concurrency`), or reads a field that Next.js hides from the proxy (`rsc`, `next-router-prefetch` and others, and the parameter `_rsc`)
 * @example
 * export const proxy = rateLimitProxy({
 *   clientAddress: { forwardedFor: { trustedProxies: 1 } },
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function rateLimitProxy<
  Context extends Request = Request,
  Event extends ProxyEvent = ProxyEvent,
>(
  options: AppOptions<Context>,
  proxy?: AdmittedProxy<Context, Event>,
): LimitedProxy<Context, Event> {
  return proxyOf(createKnowingLimiter(options, ofNext), proxy)
}

/** @internal */
export function proxyOf<Context extends Request, Event extends ProxyEvent>(
  limiter: Limiter,
  proxy: AdmittedProxy<Context, Event> = () => undefined,
): LimitedProxy<Context, Event> {
  const check = checkOf(limiter)
  return async (request, event) => {
    const waitUntil = (promise: Promise<unknown>) => event.waitUntil(promise)
    const { response, finish, decision } = await check(request, { waitUntil })
    if (response) return response
    return finish((await proxy(request, event, decision)) ?? passOn())
  }
}

/** Equals `NextResponse.next()`. The package `next` is not imported, so that this module loads outside of Next.js too, as in tests. */
const passOn = () => new Response(null, { headers: { 'x-middleware-next': '1' } })
