import type { Context } from 'hono'
import { Hono } from 'hono/tiny'
import { isOpen } from '../../api/caller.ts'
import { ENVOY } from '../../api/forwarded.ts'
import { apiLua } from '../../api/lua.ts'
import { createRouter, KEYS } from '../../api/router.ts'
import type { Bindings } from '../../core/base/bindings.ts'
import { ConfigError } from '../../core/base/errors.ts'
import { isOrigin } from '../../core/base/host.ts'
import type { ConfigOptions } from '../../core/config/options.ts'
import { createLimiter } from '../../core/create.ts'
import type { Limiter } from '../../core/feature.ts'
import { badHost, handle, limitRequest, unconfigured } from '../../core/pipeline.ts'
import { normalizePath } from '../../core/request/path.ts'
import { withCors } from '../../core/respond/cors.ts'
import { problem } from '../../core/respond/response.ts'
import { defaults } from '../../features/defaults.ts'
import type { EndpointsOptions } from '../../features/endpoints/index.ts'
import { operators } from '../../features/endpoints/operators.ts'
import { verify } from '../../features/verify/index.ts'
import { runtimeOf } from '../app/hono-runtime.ts'
import { deployed } from './deployed.ts'
import { forward, noZone, whyNotForward } from './proxy.ts'

/** The variables and bindings that the gateway reads from the Worker's environment. */
export interface GatewayBindings extends Bindings {
  /** Overrides `origin` of the configuration. */
  ORIGIN?: string
}

/** Options of `createGateway`. */
export interface GatewayOptions extends EndpointsOptions {}

/**
 * Creates the whole Worker. It decides each request, then forwards it to the origin or answers 429. Paths under `/_sluice/` are
 * reserved, for example for the decision API.
 * @throws {ConfigError} immediately, if the configuration is invalid
 * @example
 * export default createGateway(defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * }))
 */
export function createGateway(
  options: ConfigOptions<Context>,
  more: GatewayOptions = {},
): Hono<{ Bindings: GatewayBindings }> {
  const byDefault = [...defaults(), ...operators(), verify()]
  return gatewayOf(createLimiter(options, { byDefault, lua: apiLua }), more)
}

/** @param limiter with the parts of the script that the decision API needs @internal */
export function gatewayOf(
  limiter: Limiter,
  { openapi }: GatewayOptions,
): Hono<{ Bindings: GatewayBindings }> {
  deployed.limiter = limiter
  const { config, log } = limiter
  const { origin: configured, originTimeoutMs } = config
  const withOwnCors = (c: Context, answer: Response) =>
    withCors(answer, config, c.req.header('origin'))
  const app: Hono<{ Bindings: GatewayBindings }> = new Hono({
    // Routes by the normalized path, so that no other spelling of a reserved path reaches the origin. The path behind Envoy's
    // prefix comes from the client. It is not normalized: `/..%2F..%2F` would leave the prefix and reach an endpoint that answers 200.
    getPath: (request) => {
      const { pathname } = new URL(request.url)
      const isRaw = pathname.startsWith(`${ENVOY}/`) || KEYS.test(pathname)
      if (isRaw) return pathname
      const path = normalizePath(pathname)
      // In another letter case a path is reserved too, because the call may have a token. No endpoint has it.
      return /^\/_sluice(\/|$)/i.test(path) && !path.startsWith('/_sluice') ? '/_sluice' : path
    },
  })

  /** A Worker that only serves the decision API needs no origin. */
  const missingOrigin = ({ env, req }: Context) => {
    const origin = env?.ORIGIN ?? configured
    return origin === undefined && isOpen('api', env ?? {})
      ? undefined
      : originProblem(origin, req.raw)
  }
  const route = createRouter(limiter, openapi)
  let lastValidOrigin: string | undefined
  app.all('/_sluice/*', async (c) => {
    const { raw, path } = c.req
    const runtime = runtimeOf(c)
    const described = { ...runtime, contextOf: (request: Request) => contextOf(request, c) }
    const answer = await route(raw, path, described, () => missingOrigin(c))
    if (answer) return answer
    const reserved = { title: 'Not Found', detail: 'Paths under /_sluice/ are reserved.' }
    const own = await handle(limiter, raw, runtime, path)
    return withOwnCors(c, own ?? problem(404, reserved))
  })

  app.all('*', (c) => {
    const { raw } = c.req
    const origin = c.env?.ORIGIN ?? configured
    const isKnown = origin !== undefined && origin === lastValidOrigin
    const detail = isKnown ? undefined : originProblem(origin, raw)
    if (detail) {
      log('no-origin', '', detail)
      return withOwnCors(c, problem(500, { title: 'No origin', detail }))
    }
    if (origin !== 'zone') lastValidOrigin = origin
    const refused = whyNotForward(raw, origin!)
    if (refused) {
      const { status, ...members } = refused
      if (status === 508) log('loop', '', members.detail)
      return withOwnCors(c, problem(status, members))
    }
    return limitRequest(limiter, raw, runtimeOf(c), (checked) =>
      forward(checked, origin!, originTimeoutMs, (answer) => withOwnCors(c, answer)),
    )
  })

  app.onError((error, c) => {
    const isOwn = error instanceof ConfigError
    log('error', error.name, isOwn ? error.message : 'a request failed')
    const answer = isOwn ? unconfigured(error) : problem(500, { title: 'Internal Server Error' })
    return withOwnCors(c, answer)
  })
  const { fetch } = app
  app.fetch = (request, ...rest) => {
    try {
      return fetch(request, ...rest)
    } catch (error) {
      // workerd passes each Host on, such as `a b`, and Hono reads the URL before it catches errors.
      if (URL.canParse(request.url)) throw error
      return badHost()
    }
  }
  return app
}

/** Makes a Hono context for a described request, as the argument of key functions. */
async function contextOf(request: Request, { env }: Context): Promise<Context> {
  let context: Context | undefined
  const app = new Hono().all('*', (c) => {
    context = c
    return c.body(null)
  })
  await app.fetch(request, env)
  return context!
}

function originProblem(origin: string | undefined, request: Request): string | undefined {
  if (origin === undefined) return 'set origin in sluice.config.ts, or the variable ORIGIN'
  if (origin === 'zone') return noZone(request)
  return isOrigin(origin)
    ? undefined
    : 'the variable ORIGIN: expected a URL like "https://origin.example.com", or "zone"'
}
