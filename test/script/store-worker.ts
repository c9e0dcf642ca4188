/** A Worker that only has the store. It decides the requests in the body of a POST, and at `/shared` it batches them. */

import { allParts } from '../../cli/replay/decide/script-parts.ts'
import { connect } from '../../src/core/connection/connection.ts'
import { withDeadline } from '../../src/core/connection/deadline.ts'
import type { Store } from '../../src/core/connection/store.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'

const deadlineMs = 20_000
let stores: Record<string, Store> | undefined

export default {
  async fetch(
    request: Request,
    env: { UPSTASH_REDIS_REST_URL: string; UPSTASH_REDIS_REST_TOKEN: string },
    context: { waitUntil: (promise: Promise<unknown>) => void },
  ) {
    if (!stores) {
      const store = createUpstashStore({
        url: env.UPSTASH_REDIS_REST_URL,
        token: env.UPSTASH_REDIS_REST_TOKEN,
        lua: allParts,
      })
      stores = { '/': store, '/shared': withDeadline(connect(store)) }
    }
    const store = stores[new URL(request.url).pathname]!
    const requests = (await request.json()) as never
    const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
    return Response.json(await store.decide(requests, { deadlineMs, waitUntil }))
  },
}
