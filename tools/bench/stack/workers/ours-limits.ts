/** `limits` by name and key, in a Worker that responds as that of the peer. */
import { type Limits, limits } from '../../../../src/limits/limits.ts'
import type { LimitsSettings, WorkerEnv } from '../variants.ts'

let quota: Limits | undefined

export default {
  async fetch(
    request: Request,
    env: WorkerEnv,
    context: { waitUntil(promise: Promise<unknown>): void },
  ) {
    if (!quota) {
      const { terms, batching }: LimitsSettings = JSON.parse(env.settings)
      quota = limits(terms, { env, batching })
    }
    const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
    const client = request.headers.get('cf-connecting-ip') ?? ''
    const { allowed, retryAfterMs } = await quota.limit('quota-0', client, { waitUntil })
    return allowed ? new Response('ok') : Response.json({ retryAfterMs }, { status: 429 })
  },
}
