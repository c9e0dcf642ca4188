/** A Worker that is only the store: it decides what is posted to it. */
import { createUpstashStore } from '../../src/store/upstash.ts'

let store: ReturnType<typeof createUpstashStore> | undefined

export default {
  async fetch(
    request: Request,
    env: { UPSTASH_REDIS_REST_URL: string; UPSTASH_REDIS_REST_TOKEN: string },
  ) {
    store ??= createUpstashStore({
      url: env.UPSTASH_REDIS_REST_URL,
      token: env.UPSTASH_REDIS_REST_TOKEN,
      deadlineMs: 20_000,
    })
    return Response.json(await store.decide((await request.json()) as never))
  },
}
