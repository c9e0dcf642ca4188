/** A client may disconnect before the decision. A charge that depends on the response must still be settled. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Hono } from 'hono'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { concurrency } from '../../support/features.ts'

let arrived = Promise.withResolvers<() => void>()
/** A database that holds the reply to a take until the test releases it. */
const redis = createServer(async (request, response) => {
  const body = (await request.toArray()).join('')
  const state = body.includes(':slots,') ? '+0,0,0,0;' : '+;'
  const reply = () => void response.end(JSON.stringify({ result: `0 ${state}` }))
  if (body.includes('"refund')) reply()
  else arrived.resolve(reply)
})
beforeAll(() => new Promise<void>((resolve) => void redis.listen(0, '127.0.0.1', resolve)))
afterAll(() => void redis.close())

test.each<[keeps: boolean, Partial<PolicyOptions>]>([
  [true, { countOnly: '4xx' }],
  [true, { algorithm: 'concurrency' }],
  [true, { cost: { response: 'x-cost' } }],
  [false, {}],
])('The use of waitUntil while Redis decides is %s for a policy with %j.', async (keeps, more) => {
  const app = new Hono()
  app.use(
    rateLimiter({
      clientAddress: 'cloudflare',
      batching: false, // Batching itself calls waitUntil.
      policies: [{ name: 'a', limit: 1, window: '1h', ...more }],
      use: [concurrency()],
    }),
  )
  app.get('/', (c) => c.text('ok'))
  arrived = Promise.withResolvers()
  const work: Promise<unknown>[] = []
  const answer = app.request(
    '/',
    { headers: { 'cf-connecting-ip': '192.0.2.1' } },
    {
      UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${(redis.address() as AddressInfo).port}`,
      UPSTASH_REDIS_REST_TOKEN: 'a-token',
    },
    { waitUntil: (promise: Promise<unknown>) => void work.push(promise) } as never,
  )
  const reply = await arrived.promise
  expect(work.length > 0).toBe(keeps)
  reply()
  expect((await answer).status).toBe(200)
})
