/** The whole Worker in front of an origin, with its first layer where it has one. */
import { createGateway } from '../../../src/index.ts'

interface Env {
  url: string
  token: string
  settings: string
  /** Cloudflare's own rate limit. */
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
