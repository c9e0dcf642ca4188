/**
 * Runs all examples of the documentation in one Worker. The header `x-example` selects one: `<name>#<run>`. Each run has separate
 * counters and an app of its own.
 */
import keyFunction from '../../examples/key-function.ts'
import type { Feature } from '../../src/core/feature.ts'
import { type BodiesOptions, bodies } from '../../src/features/bodies/index.ts'
import { cluster } from '../../src/features/cluster/index.ts'
import { type GraphqlCostOptions, graphqlCost } from '../../src/features/graphql/graphql.ts'
import { jitter } from '../../src/features/jitter/index.ts'
import { type JwtOptions, jwt } from '../../src/features/jwt/index.ts'
import { type ObserveOptions, observe } from '../../src/features/observe/index.ts'
import { type QuotaOptions, quota } from '../../src/features/quota/index.ts'
import { type TurnsOptions, turns } from '../../src/features/turns/index.ts'
import { type ConfigOptions, createGateway } from '../../src/index.ts'

interface App {
  fetch(request: Request, env: object, context: never): Response | Promise<Response>
}

/** Apps by run. Configurations are created on demand from the JSON in the variable EXAMPLES. */
const apps = new Map<string, App>()

/** Makes the features of a configuration from their options in the JSON. */
const makers: Record<string, (options: never) => Feature> = {
  observe: (options: ObserveOptions) => observe(options),
  bodies: ({ graphql, ...options }: BodiesOptions & { graphql?: Made<GraphqlCostOptions> }) =>
    bodies({ ...options, ...(graphql && { graphql: graphqlCost(graphql.options) }) }),
  jitter: (share: '10%') => jitter(share),
  quota: (options: QuotaOptions) => quota(options),
  jwt: (options: JwtOptions) => jwt(options),
  cluster: () => cluster(),
  turns: (options: TurnsOptions) => turns(options),
}

/** The call of a function, in JSON. */
interface Made<Options = never> {
  maker: string
  options: Options
}
type Example = Omit<ConfigOptions, 'use'> & { use?: Made[] }

interface Env {
  EXAMPLES: string
  UPSTASH_REDIS_REST_URL: string
  UPSTASH_REDIS_REST_TOKEN: string
}

export default {
  fetch(request: Request, env: Env, context: never) {
    const headers = new Headers(request.headers)
    const run = headers.get('x-example')!
    const [name] = run.split('#') as [string]
    headers.delete('x-example')
    let app = name === 'key-function' ? (keyFunction as unknown as App) : apps.get(run)
    if (!app) {
      const { use = [], ...config } = JSON.parse(env.EXAMPLES)[name] as Example
      const features = use.map(({ maker, options }) => makers[maker]!(options))
      app = createGateway({ deadline: '10s', ...config, use: features }) as unknown as App
      apps.set(run, app)
    }
    // The secret hashes the keys in Redis, so a secret for each run separates the counters.
    const variables = { ...env, SLUICE_SECRET: run }
    return app.fetch(new Request(request, { headers }), variables, context)
  },
}
