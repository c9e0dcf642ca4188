/** A caller of an operation or a refund may disconnect before Redis answers. The isolate must still apply the change. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'

const token = 'an-operate-token-for-tests'
let arrived = Promise.withResolvers<() => void>()
/** A database that holds its reply until the test releases it. */
const redis = createServer((_, response) =>
  arrived.resolve(() => void response.end(JSON.stringify({ result: '0 +;' }))),
)
beforeAll(() => new Promise<void>((resolve) => void redis.listen(0, '127.0.0.1', resolve)))
afterAll(() => void redis.close())

test.each([
  ['/policies/a/reset', { key: 'k' }],
  ['/refund', { policy: 'a', key: 'k' }],
])('The endpoint %s keeps the isolate alive until Redis answers.', async (path, body) => {
  const gateway = createGateway({
    origin: 'https://origin.example',
    policies: [{ name: 'a', limit: 1, window: '1h', key: 'header:x-key' }],
  })
  arrived = Promise.withResolvers()
  const work: Promise<unknown>[] = []
  const answer = gateway.request(
    `/_sluice/v1${path}`,
    {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    },
    {
      UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${(redis.address() as AddressInfo).port}`,
      UPSTASH_REDIS_REST_TOKEN: 'a-token',
      SLUICE_OPERATE_TOKEN: token,
    },
    { waitUntil: (promise: Promise<unknown>) => void work.push(promise) } as never,
  )
  const reply = await arrived.promise
  const ended = Promise.all(work).then(() => 'ended')
  expect(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 50))])).toBe(
    undefined,
  )
  reply()
  expect(await ended).toBe('ended')
  expect((await answer).status).toBe(200)
})
