import type { Context } from 'hono'
import { Hono } from 'hono/tiny'
import type { Bindings } from './bindings.ts'
import { withCors } from './cors.ts'
import { createLog } from './log.ts'
import { enforce, wouldRefuse } from './middleware.ts'
import type { ConfigOptions } from './options.ts'
import { normalizePath } from './path.ts'
import { parseConfig } from './policy.ts'
import { forward, noZone } from './proxy.ts'
import { problem } from './response.ts'
import { isOrigin } from './schema/config.ts'

/** What the gateway reads from the Worker's environment. */
export interface GatewayBindings extends Bindings {
  /** Overrides the configuration's `origin`. */
  ORIGIN?: string
}

/**
 * The whole Worker: every request is decided, then forwarded to the origin or answered 429. Paths under `/_sluice/` are its own.
 * @throws {ConfigError} at once, where the configuration is wrong
 * @example
 * export default createGateway(defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * }))
 */
export function createGateway(
  options: ConfigOptions<Context>,
): Hono<{ Bindings: GatewayBindings }> {
  const config = parseConfig(options)
  const { policies, origin: configured, originTimeoutMs } = config
  const log = createLog()
  /** An answer of the gateway's own, which the pages of `cors` may read. */
  const ours = (c: Context, answer: Response) =>
    withCors(answer, c.req.header('origin'), config, { own: true })
  const app = new Hono<{ Bindings: GatewayBindings }>({
    // Routed by the path that policies see, so that no other spelling of a reserved path reaches the origin.
    getPath: (request) => normalizePath(new URL(request.url).pathname),
  })

  app.get('/_sluice/health', (c) =>
    c.json({ status: 'ok', policies: policies.map(({ name }) => name) }, 200, {
      'Cache-Control': 'no-store',
    }),
  )
  app.all('/_sluice/*', () =>
    problem(404, { title: 'Not Found', detail: 'Paths under /_sluice/ are reserved.' }),
  )

  app.use(async function requireOrigin(c, next) {
    const origin = c.env?.ORIGIN ?? configured
    const wrong = whyNot(origin, c.req.raw)
    if (!wrong) return next()
    log('no-origin', '', wrong)
    return ours(c, problem(500, { title: 'No origin', detail: wrong }))
  })
  app.use(enforce(config, options))
  app.all('*', (c) =>
    forward(c.req.raw, (c.env?.ORIGIN ?? configured)!, {
      timeoutMs: originTimeoutMs,
      shadow: wouldRefuse(c.var.rateLimit),
      asOurs: (answer) => ours(c, answer),
    }),
  )

  app.onError((error, c) => {
    log('error', error.name, 'a request failed')
    return ours(c, problem(500, { title: 'Internal Server Error' }))
  })
  return app
}

function whyNot(origin: string | undefined, request: Request): string | undefined {
  if (origin === undefined) return 'set origin in sluice.config.ts, or the variable ORIGIN'
  if (origin === 'zone') return noZone(request)
  return isOrigin(origin)
    ? undefined
    : 'the variable ORIGIN: expected a URL like "https://origin.example.com", or "zone"'
}
