import type { Context } from 'hono'
import { Hono } from 'hono/tiny'
import { isOpen } from '../api/caller.ts'
import { ENVOY } from '../api/forwarded.ts'
import { createHealth } from '../api/health.ts'
import { createApi } from '../api/router.ts'
import type { Bindings } from '../base/bindings.ts'
import type { ConfigOptions } from '../config/options.ts'
import { parseConfig } from '../config/parse.ts'
import { isOrigin } from '../config/schema/config.ts'
import { withCors } from '../http/cors.ts'
import { problem } from '../http/response.ts'
import { wouldRefuse } from '../http/shadow.ts'
import { createLimiter } from '../limiter/create.ts'
import { normalizePath } from '../request/path.ts'
import { keepAlive, limitRequest } from './pipeline.ts'
import { type ForwardOptions, forward, noZone, whyNotForward } from './proxy.ts'
import { maySpeculate, speculate } from './speculative.ts'

/** What the gateway reads from the Worker's environment. */
export interface GatewayBindings extends Bindings {
  /** Overrides the configuration's `origin`. */
  ORIGIN?: string
}

type App = Hono<{ Bindings: GatewayBindings }>

/**
 * The whole Worker: every request is decided, then forwarded to the origin or answered 429. Paths under `/_sluice/` are its own,
 * the decision API among them.
 * @throws {ConfigError} at once, where the configuration is wrong
 * @example
 * export default createGateway(defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * }))
 */
export function createGateway(options: ConfigOptions<Context>): App {
  const limiter = createLimiter(parseConfig(options), options)
  const { config, log } = limiter
  const { origin: configured, originTimeoutMs } = config
  /** An answer of the gateway's own, which the pages of `cors` may read. */
  const ours = (c: Context, answer: Response) =>
    withCors(answer, c.req.header('origin'), config, { own: true })
  const app: App = new Hono({
    // Routed by the path that policies see, so that no other spelling of a reserved path reaches the origin. What stands behind
    // Envoy's prefix is a client's: resolved, `/..%2F..%2F` would lead out of there, to an answer that lets the client pass.
    getPath: (request) => {
      const { pathname } = new URL(request.url)
      return pathname.startsWith(`${ENVOY}/`) ? pathname : normalizePath(pathname)
    },
  })

  const { health, ready } = createHealth(limiter)
  /** A Worker that only serves the decision API forwards nothing, so it needs no origin. */
  const noOrigin = ({ env, req }: Context) => {
    const origin = env?.ORIGIN ?? configured
    return origin === undefined && isOpen('api', env ?? {}) ? undefined : whyNot(origin, req.raw)
  }
  app.get('/_sluice/health', (c) => health(around(c).env, noOrigin(c)))
  app.get('/_sluice/ready', (c) => ready(c.req.raw, around(c), noOrigin(c)))
  const api = createApi(limiter)
  let good: string | undefined // the last origin that was one
  app.all('/_sluice/*', async (c) => {
    const answer = await api(c.req.raw, c.req.path, {
      ...around(c),
      contextOf: (request) => contextOf(request, c),
    })
    const reserved = { title: 'Not Found', detail: 'Paths under /_sluice/ are reserved.' }
    return ours(c, answer ?? problem(404, reserved))
  })

  app.use(async function requireOrigin(c, next) {
    const origin = c.env?.ORIGIN ?? configured
    const wrong = origin !== undefined && origin === good ? undefined : whyNot(origin, c.req.raw)
    if (!wrong) {
      if (origin !== 'zone') good = origin
      return next()
    }
    log('no-origin', '', wrong)
    return ours(c, problem(500, { title: 'No origin', detail: wrong }))
  })
  app.use(async function requireForwardable(c, next) {
    const refused = whyNotForward(c.req.raw, (c.env?.ORIGIN ?? configured)!)
    if (!refused) return next()
    const { status, ...members } = refused
    if (status === 508) log('loop', '', members.detail)
    return ours(c, problem(status, members))
  })
  const ask = (c: Context, options: Pick<ForwardOptions, 'shadow' | 'ending'>) =>
    forward(c.req.raw, (c.env?.ORIGIN ?? configured)!, {
      timeoutMs: originTimeoutMs,
      asOurs: (answer) => ours(c, answer),
      ...options,
    })
  app.all('*', (c) =>
    limitRequest(limiter, c, {
      speculate: (policies) =>
        maySpeculate(c.req.raw, policies) ? speculate((ending) => ask(c, { ending })) : undefined,
      respond: (speculative) =>
        speculative?.response ?? ask(c, { shadow: wouldRefuse(c.var.rateLimit) }),
    }),
  )

  app.onError((error, c) => {
    log('error', error.name, 'a request failed')
    return ours(c, problem(500, { title: 'Internal Server Error' }))
  })
  return app
}

const around = (c: Context) => ({
  env: (c.env ?? {}) as Record<string, unknown>,
  waitUntil: (promise: Promise<unknown>) => keepAlive(c, promise),
})

/** Hono's context of a request that is not under way: what key functions are given. */
async function contextOf(request: Request, { env }: Context): Promise<Context> {
  let context: Context | undefined
  const app = new Hono().all('*', (c) => {
    context = c
    return c.body(null)
  })
  await app.fetch(request, env)
  return context!
}

function whyNot(origin: string | undefined, request: Request): string | undefined {
  if (origin === undefined) return 'set origin in sluice.config.ts, or the variable ORIGIN'
  if (origin === 'zone') return noZone(request)
  return isOrigin(origin)
    ? undefined
    : 'the variable ORIGIN: expected a URL like "https://origin.example.com", or "zone"'
}
