/**
 * Every example of the documentation in one Worker. The header `x-example` selects one, as `<name>` or `<name>#<run>`; each run has its own
 * counters.
 */
import keyFunction from '../../examples/key-function.ts'
import { type ConfigOptions, createGateway } from '../../src/index.ts'

interface App {
  fetch(request: Request, env: object, context: never): Response | Promise<Response>
}

/** Those that are code are imported; the others come as JSON in the variable EXAMPLES. */
const apps = new Map<string, App>([['key-function', keyFunction as unknown as App]])

interface Env {
  EXAMPLES: string
  UPSTASH_REDIS_REST_URL: string
  UPSTASH_REDIS_REST_TOKEN: string
}

/** The same database by the names of several. */
const named = ({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }: Env) => ({
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
    // Each run of an example has its own secret, and so its own counters.
    const variables = { ...env, ...named(env), SLUICE_SECRET: run }
    return app.fetch(new Request(request, { headers }), variables, context)
  },
}
