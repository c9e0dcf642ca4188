/** Makes one GET over Upstash's REST API: the minimum cost of a limiter with Redis. */
import type { WorkerEnv } from '../variants.ts'

export default {
  async fetch(request: Request, env: WorkerEnv) {
    const response = await fetch(env.UPSTASH_REDIS_REST_URL, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify(['GET', `bare:${request.headers.get('cf-connecting-ip')}`]),
    })
    const { result } = (await response.json()) as { result: unknown }
    return new Response(result === null ? 'ok' : 'there')
  },
}
