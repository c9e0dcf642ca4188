import type { Context } from 'hono'
import { Hono } from 'hono/tiny'
import { apiLua } from '../../api/lua.ts'
import type { Bindings } from '../../core/base/bindings.ts'
import type { ConfigOptions } from '../../core/config/options.ts'
import { createLimiter } from '../../core/create.ts'
import type { Limiter } from '../../core/feature.ts'
import { defaults } from '../../features/defaults.ts'
import { operators } from '../../features/endpoints/operators.ts'
import { verify } from '../../features/verify/index.ts'
import { answering, type GatewayOptions, pathOf } from './answering.ts'

/** The variables and bindings that the gateway reads from the Worker's environment. */
export interface GatewayBindings extends Bindings {
  /** Overrides `origin` of the configuration. */
  ORIGIN?: string
}

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
  options: GatewayOptions,
): Hono<{ Bindings: GatewayBindings }> {
  const app: Hono<{ Bindings: GatewayBindings }> = new Hono({ getPath: pathOf })
  app.all('*', answering(limiter, options, contextOf))
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
