/** A gateway without Hono, whose context only functions of a configuration need. */
import type { Context } from 'hono'
import { isOpen } from '../../api/caller.ts'
import { ENVOY } from '../../api/forwarded.ts'
import { createRouter, KEYS } from '../../api/router.ts'
import { ConfigError } from '../../core/base/errors.ts'
import { isOrigin } from '../../core/base/host.ts'
import type { Limiter } from '../../core/feature.ts'
import { badHost, handle, limitRequest, unconfigured } from '../../core/pipeline.ts'
import { normalizePath } from '../../core/request/path.ts'
import { withCors } from '../../core/respond/cors.ts'
import { problem } from '../../core/respond/response.ts'
import type { EndpointsOptions } from '../../features/endpoints/index.ts'
import { runtimeOf } from '../app/hono-runtime.ts'
import { deployed } from './deployed.ts'
import { forward, noZone, whyNotForward } from './proxy.ts'

/** Options of `createGateway`. */
export interface GatewayOptions extends EndpointsOptions {}

/** What runs as a Worker. */
export interface GatewayWorker {
  fetch(request: Request, env?: object, context?: object): Promise<Response>
}

/** @internal */
export function workerOf(limiter: Limiter, options: GatewayOptions): GatewayWorker {
  const answer = answering(limiter, options, async (described) => described)
  return {
    async fetch(raw, env, executionCtx) {
      const req = { raw, path: pathOf(raw) }
      const answered = await answer({ req, env, executionCtx } as Context)
      return raw.method === 'HEAD' ? new Response(null, answered) : answered // as Hono answers it
    },
  }
}

/**
 * The normalized path, so that no other spelling of a reserved path reaches the origin. The path behind Envoy's prefix comes from the
 * client. It is not normalized: `/..%2F..%2F` would leave the prefix and reach an endpoint that answers 200.
 * @returns nothing for a URL that cannot be read: workerd passes each Host on, such as `a b`
 */
export function pathOf({ url }: Request): string {
  if (!URL.canParse(url)) return ''
  const { pathname } = new URL(url)
  const isRaw = pathname.startsWith(`${ENVOY}/`) || KEYS.test(pathname)
  if (isRaw) return pathname
  const path = normalizePath(pathname)
  // In another letter case a path is reserved too, because the call may have a token. No endpoint has it.
  return /^\/_sluice(\/|$)/i.test(path) && !path.startsWith('/_sluice') ? '/_sluice' : path
}

/** @param contextOf makes the argument of key functions for a described request */
export function answering(
  limiter: Limiter,
  { openapi }: GatewayOptions,
  contextOf: (described: Request, c: Context) => Promise<unknown>,
) {
  deployed.limiter = limiter
  const { config, log } = limiter
  const route = createRouter(limiter, openapi)
  let lastValidOrigin: string | undefined

  return async (c: Context): Promise<Response> => {
    const { raw: request, path } = c.req
    if (path === '') return badHost()
    const runtime = runtimeOf(c)
    // Not of the process, where other software names its own origin so.
    const env: Record<string, unknown> = c.env ?? {}
    const origin = (env.ORIGIN as string | undefined) ?? config.origin
    /** Adds the CORS fields to a response that the gateway itself makes. */
    const finishProblem = (answer: Response) =>
      withCors(answer, config, request.headers.get('origin'))
    try {
      if (/^\/_sluice(\/|$)/.test(path)) {
        // A Worker that only serves the decision API needs no origin.
        const missingOrigin = () =>
          origin === undefined && isOpen('api', env) ? undefined : originProblem(origin, request)
        const described = { ...runtime, contextOf: (own: Request) => contextOf(own, c) }
        const answer = await route(request, path, described, missingOrigin)
        if (answer) return answer
        const reserved = { title: 'Not Found', detail: 'Paths under /_sluice/ are reserved.' }
        const own = await handle(limiter, request, runtime, path)
        return finishProblem(own ?? problem(404, reserved))
      }
      const isKnown = origin !== undefined && origin === lastValidOrigin
      const detail = isKnown ? undefined : originProblem(origin, request)
      if (detail) {
        log('no-origin', '', detail)
        return finishProblem(problem(500, { title: 'No origin', detail }))
      }
      if (origin !== 'zone') lastValidOrigin = origin
      const refused = whyNotForward(request, origin!)
      if (refused) {
        const { status, ...members } = refused
        if (status === 508) log('loop', '', members.detail)
        return finishProblem(problem(status, members))
      }
      return await limitRequest(limiter, request, runtime, (checked) =>
        forward(checked, origin!, config.originTimeoutMs, finishProblem),
      )
    } catch (error) {
      const isOwn = error instanceof ConfigError
      log('error', (error as Error).name, isOwn ? error.message : 'a request failed')
      const answer = isOwn ? unconfigured(error) : problem(500, { title: 'Internal Server Error' })
      return finishProblem(answer)
    }
  }
}

function originProblem(origin: string | undefined, request: Request): string | undefined {
  if (origin === undefined) return 'set origin in sluice.config.ts, or the variable ORIGIN'
  if (origin === 'zone') return noZone(request)
  if (isOrigin(origin)) return undefined
  return 'the variable ORIGIN: expected a URL like "https://origin.example.com", or "zone"'
}
