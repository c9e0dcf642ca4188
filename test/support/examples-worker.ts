/** Every example of docs/reference/configuration.md in one Worker: `x-example` picks one, and goes no further. */
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
    const name = headers.get('x-example')!
    headers.delete('x-example')
    let app = apps.get(name)
    if (!app) {
      const examples = JSON.parse(env.EXAMPLES) as Record<string, ConfigOptions>
      app = createGateway({ deadline: '10s', ...examples[name]! }) as unknown as App
      apps.set(name, app)
    }
    // Under a secret of its own each example has quotas of its own, whoever asks.
    const variables = { ...env, ...named(env), SLUICE_SECRET: name }
    return app.fetch(new Request(request, { headers }), variables, context)
  },
}
