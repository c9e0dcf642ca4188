/**
 * Runs all examples of the documentation in one Worker. The header `x-example` selects one: `<name>#<run>`. Each run has separate
 * counters and an app of its own.
 */
import keyFunction from '../../examples/key-function.ts'
import { type BodiesOptions, bodies } from '../../src/bodies/index.ts'
import { type GraphqlCostOptions, graphqlCost } from '../../src/graphql/graphql.ts'
import { type ConfigOptions, createGateway } from '../../src/index.ts'
import { type JwtOptions, jwt } from '../../src/jwt/index.ts'
import { leases } from '../../src/leases/index.ts'
import { type ObserveOptions, observe } from '../../src/observe/index.ts'
import { overrides } from '../../src/overrides/index.ts'
import { refusals } from '../../src/refusals/index.ts'
import { cluster, shards } from '../../src/shards/index.ts'

interface App {
  fetch(request: Request, env: object, context: never): Response | Promise<Response>
}

/** Apps by run. Configurations are created on demand from the JSON in the variable EXAMPLES. */
const apps = new Map<string, App>()

type Example = Omit<
  ConfigOptions,
  'observe' | 'bodies' | 'refusals' | 'jwt' | 'leases' | 'overrides'
> & {
  refusals?: object
  jwt?: JwtOptions
  leases?: object
  overrides?: object
  observe?: ObserveOptions
  bodies?: Omit<BodiesOptions, 'graphql'> & { graphql?: GraphqlCostOptions }
}

interface Env {
  EXAMPLES: string
  UPSTASH_REDIS_REST_URL: string
  UPSTASH_REDIS_REST_TOKEN: string
}

/** Maps the variables of two shards to the same database. */
const shardVariables = ({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }: Env) =>
  Object.fromEntries(
    ['EU_1', 'EU_2'].flatMap((name) => [
      [`UPSTASH_REDIS_REST_URL_${name}`, url],
      [`UPSTASH_REDIS_REST_TOKEN_${name}`, token],
    ]),
  )

export default {
  fetch(request: Request, env: Env, context: never) {
    const headers = new Headers(request.headers)
    const run = headers.get('x-example')!
    const [name] = run.split('#') as [string]
    headers.delete('x-example')
    let app = name === 'key-function' ? (keyFunction as unknown as App) : apps.get(run)
    if (!app) {
      const examples = JSON.parse(env.EXAMPLES) as Record<string, Example>
      const {
        observe: options,
        bodies: body,
        refusals: own,
        shards: layout,
        jwt: token,
        leases: leased,
        overrides: resized,
        cluster: clustered,
        ...config
      } = examples[name]!
      const observed = options && { observe: observe(options) }
      const graphql = body?.graphql && { graphql: graphqlCost(body.graphql) }
      const read = body && { bodies: bodies({ ...body, ...graphql } as BodiesOptions) }
      const written = own && { refusals: refusals() }
      const sharded = layout && { shards: shards(layout.names) }
      const verified = token && { jwt: jwt(token) }
      const lent = leased && { leases: leases() }
      const overridden = resized && { overrides: overrides() }
      const split = clustered && { cluster: cluster() }
      const some = { ...observed, ...read, ...written, ...sharded, ...split }
      const entries = { ...some, ...verified, ...lent, ...overridden }
      const all = { deadline: '10s', ...config, ...entries } as ConfigOptions
      app = createGateway(all) as unknown as App
      apps.set(run, app)
    }
    // The secret hashes the keys in Redis, so a secret for each run separates the counters.
    const variables = { ...env, ...shardVariables(env), SLUICE_SECRET: run }
    return app.fetch(new Request(request, { headers }), variables, context)
  },
}
