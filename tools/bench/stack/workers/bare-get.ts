/** Makes one GET: the minimum cost of a limiter with Redis. */
import type { WorkerEnv } from '../variants.ts'
import { get } from './get.ts'

export default {
  async fetch(request: Request, env: WorkerEnv) {
    const result = await get(env, `${request.headers.get('cf-connecting-ip')}`)
    return new Response(result === null ? 'ok' : 'there')
  },
}
