/** Origins read a path in different ways. Sluice counts every reading, because it does not know the origin's. */
import { expect, test } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import { useGateway } from '../../support/gateway.ts'

const gateway = useGateway({
  config: {
    policies: [
      {
        name: 'per-user',
        limit: 3,
        window: '1h' as const,
        match: { path: '/users/:id/*' },
        key: 'path:id',
      },
      {
        name: 'follow',
        mode: 'shadow',
        limit: 3,
        window: '1h' as const,
        match: { path: '/users/:id/*' },
        key: 'path:id',
      },
      {
        name: 'slots',
        algorithm: 'concurrency',
        limit: 2,
        window: '1h' as const,
        match: { path: '/files/:id/*' },
        key: 'path:id',
      },
    ],
  },
})

/** The number of requests that the origin served for each user. */
const served = new Map<string, number>()

/** Sends a request. Returns the status and the RateLimit fields. */
async function send(path: string) {
  const response = await gateway.fetch(path)
  const { status, headers } = response
  // The origin routes /users/:id/search/* by raw segments, as Express does.
  const { url = '' } = status === 200 ? ((await response.json()) as Echo) : {}
  const [, users, id, search] = url.split('/')
  if (users === 'users' && search === 'search') served.set(id!, (served.get(id!) ?? 0) + 1)
  return {
    status,
    rateLimit: headers.get('ratelimit'),
    policies: headers.get('ratelimit-policy'),
  }
}
const statuses = async (paths: string[]) => {
  const found: number[] = []
  for (const path of paths) found.push((await send(path)).status)
  return found
}
const limited = [200, 200, 200, 429, 429, 429]

const six = [1, 2, 3, 4, 5, 6]
test.each<[string, (turn: number) => string]>([
  ['8', () => '/users/8/search/x'],
  ['9', (turn) => `/users/9/search/..%2F..%2Fa${turn}%2Fx`],
  ['10', (turn) => `/users/10/search/..;/..;/b${turn}/x`],
  ['11', (turn) => `/users/11/search/..%5C..%5Cc${turn}/x`],
])('No spelling of a path gives user %s a second quota.', async (id, path) => {
  expect(await statuses(six.map(path))).toEqual(limited)
  expect(served.get(id)).toBe(3)
})

test('RateLimit names a policy with two readings once, with the strictest of its quotas.', async () => {
  await send('/users/20/search/x')
  const path = '/users/20/search/..%2F..%2F21%2Fx'
  expect(await send(path)).toMatchObject({
    status: 200,
    policies: '"per-user";q=3;w=3600',
    rateLimit: expect.stringContaining('"per-user";r=1;'),
  })
  expect((await send('/users/21/x')).rateLimit).toContain('"per-user";r=1;')
  expect(await statuses([path, path])).toEqual([200, 429])
  // The refused request did not charge the other quota, in which user 21 has three requests.
  expect((await send('/users/21/x')).status).toBe(429)
})

test('A request with two readings releases the slots of both.', async () => {
  for (let turn = 0; turn < 4; turn++) {
    expect((await send('/files/1/..%2F..%2Ffiles%2F2%2Fx')).status).toBe(200)
    await gateway.settled()
    for (const id of [1, 2]) {
      expect((await send(`/files/${id}/x`)).rateLimit).toBe('"slots";r=1')
      await gateway.settled()
    }
  }
})
