/**
 * Runs all examples of the documentation in one Worker. The header `x-example` selects one: `<name>` or `<name>#<run>`. Each run has
 * separate counters.
 */
import keyFunction from '../../examples/key-function.ts'
import { type ConfigOptions, createGateway } from '../../src/index.ts'

interface App {
  fetch(request: Request, env: object, context: never): Response | Promise<Response>
}

/** Apps by name. Configurations are created on demand from the JSON in the variable EXAMPLES. */
const apps = new Map<string, App>([['key-function', keyFunction as unknown as App]])

interface Env {
  EXAMPLES: string
  UPSTASH_REDIS_REST_URL: string
  UPSTASH_REDIS_REST_TOKEN: string
}

/** Maps the variables of two shards to the same database. */
const shardVariables = ({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }: Env) => ({
  UPSTASH_REDIS_REST_URL_EU_1: url,
  UPSTASH_REDIS_REST_TOKEN_EU_1: token,
  UPSTASH_REDIS_REST_URL_EU_2: url,
  UPSTASH_REDIS_REST_TOKEN_EU_2: token,
})

export default {
  fetch(request: Request, env: Env, context: never) {
    const headers = new Headers(request.headers)
    const run = headers.get('x-example')!
    const [name] = run.split('#') as [string]
    headers.delete('x-example')
    let app = apps.get(name)
    if (!app) {
      const examples = JSON.parse(env.EXAMPLES) as Record<string, ConfigOptions>
      app = createGateway({ deadline: '10s', ...examples[name]! }) as unknown as App
      apps.set(name, app)
    }
    // The secret hashes the keys in Redis, so a secret for each run separates the counters.
    const variables = { ...env, ...shardVariables(env), SLUICE_SECRET: run }
    return app.fetch(new Request(request, { headers }), variables, context)
  },
}
