/** A Worker whose requests each call an origin, through one `outbound` of the isolate. */
import { env, waitUntil } from 'cloudflare:workers'
import { outbound } from '../../src/outbound/index.ts'
import { durableObjects, SluiceSubject } from '../../src/stores/durable-objects/index.ts'

export { SluiceSubject }

const { ORIGIN } = env as { ORIGIN: string }

const call = outbound(fetch, {
  policies: [
    { name: 'calls', algorithm: 'gcra', limit: 50, window: '1s' },
    { name: 'open', algorithm: 'concurrency', limit: 2, window: '1m' },
  ],
  store: durableObjects(),
  deadline: '5s',
  env,
  waitUntil,
})

export default {
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === '/status') return Response.json(await call.status())
    const response = await call(ORIGIN, { method: 'POST', body: '{}' })
    return new Response(response.body, response)
  },
}
