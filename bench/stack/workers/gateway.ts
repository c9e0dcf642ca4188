/** The whole Worker in front of an origin, with a shield if the settings have one. */
import { createGateway } from '../../../src/index.ts'

interface Env {
  url: string
  token: string
  settings: string
  /** Cloudflare's rate-limit binding. */
  SHIELD?: object
}

let gateway: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Env, context: never) {
    gateway ??= createGateway(JSON.parse(env.settings))
    const { url, token, SHIELD } = env
    const bindings = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token, SHIELD }
    return gateway.fetch(request, bindings, context)
  },
}
