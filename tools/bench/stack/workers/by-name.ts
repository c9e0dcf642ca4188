import type { Limits } from '../../../../src/limits/door.ts'
import type { WorkerEnv } from '../variants.ts'

/**
 * Makes a Worker that decides by name and key, and responds as that of the peer.
 * @param create makes the limits of the settings of the variant
 */
export function byName(create: (settings: never, env: WorkerEnv) => Limits) {
  let quota: Limits | undefined
  return {
    async fetch(
      request: Request,
      env: WorkerEnv,
      context: { waitUntil(promise: Promise<unknown>): void },
    ) {
      quota ??= create(JSON.parse(env.settings) as never, env)
      const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
      const client = request.headers.get('cf-connecting-ip') ?? ''
      const { allowed, retryAfterMs } = await quota.limit('quota-0', client, { waitUntil })
      return allowed ? new Response('ok') : Response.json({ retryAfterMs }, { status: 429 })
    },
  }
}
