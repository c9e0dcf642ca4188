/** `distinct` in the gateway, on a real Redis. */

import { createClient } from 'redis'
import { expect, test } from 'vitest'
import type { Decision } from '../../../src/core/base/decision.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { hashedSubjects } from '../../../src/core/decide/subject.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { distinct } from '../../support/features.ts'
import { useGateway } from '../../support/gateway.ts'

class SetClock extends TestClock {
  override now() {
    return 1_789_000_000_000 + this.offsetMs
  }
}
const clock = new SetClock()
const names = (name: string, options: Partial<PolicyOptions> = {}): PolicyOptions => ({
  name,
  limit: 2,
  window: '1h',
  match: { path: `/${name}` },
  distinct: 'body:username',
  ...options,
})
const config = {
  policies: [
    names('login'),
    names('batch', { limit: 3 }),
    names('both'),
    { name: 'calls', limit: 3, window: '1h', match: { path: '/both' } },
    names('trial', { mode: 'shadow' }),
    names('failed', { match: { path: '/status/*' }, countOnly: 401, distinct: 'header:x-user' }),
    names('banned', { limit: 1, penalty: { after: 2, within: '1m', ban: '2h' } }),
    names('few', { distinct: 'header:x-user', limit: 1, window: '10s' }),
    names('large', { limit: 30, key: 'global' }),
  ] satisfies PolicyOptions[],
  use: [distinct()],
}
const gateway = useGateway({ clock, bodies: {}, config, env: apiTokens })

let clients = 0
/** A client with an address of its own: it sends the user names, and returns the statuses. */
function client() {
  clients += 1
  const ip = `198.51.100.${clients}`
  const send = (path: string, username?: unknown, headers: Record<string, string> = {}) =>
    gateway.fetch(path, {
      method: 'POST',
      ip,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(Array.isArray(username) ? username : { username }),
    })
  return {
    ip,
    send,
    async statuses(path: string, ...users: unknown[]) {
      const statuses: number[] = []
      for (const user of users) statuses.push((await send(path, user)).status)
      return statuses
    },
  }
}
const list = (...users: string[]) => users.map((username) => ({ username }))

test('A client passes with a number of different values, and with each of these as often as it likes.', async () => {
  const { statuses } = client()
  expect(await statuses('/login', 'ann', 'ann', 'bob', 'cy', 'ann', 'bob', 'cy')).toEqual([
    200, 200, 200, 429, 200, 200, 429,
  ])
})

test('Each key has values of its own.', async () => {
  expect(await client().statuses('/login', 'ann', 'bob', 'cy')).toEqual([200, 200, 429])
  expect(await client().statuses('/login', 'cy')).toEqual([200])
})

test('A value counts from its last use, and the wait of a refusal is exact.', async () => {
  const { send } = client()
  const user = (name: string) => send('/few', undefined, { 'x-user': name })
  expect((await user('ann')).status).toBe(200)
  clock.advance(6000)
  expect((await user('ann')).status).toBe(200)
  clock.advance(6000)
  const refused = await user('bob')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '4'])
  clock.advance(3999)
  expect((await user('bob')).status).toBe(429)
  clock.advance(1)
  expect((await user('bob')).status).toBe(200)
  expect((await user('ann')).status).toBe(429)
})

test('RateLimit has the values that are left.', async () => {
  const { send } = client()
  const field = async (name: string) => (await send('/login', name)).headers.get('ratelimit')
  expect(await field('ann')).toBe('"login";r=1;t=3600')
  expect(await field('ann')).toBe('"login";r=1;t=3600')
  expect(await field('bob')).toBe('"login";r=0;t=3600')
  expect(await field('ann')).toBe('"login";r=0;t=3600')
})

test('Requests without a readable value count as different ones.', async () => {
  const { statuses } = client()
  expect(await statuses('/login', undefined, undefined, undefined, 'ann')).toEqual([
    200, 200, 429, 429,
  ])
  expect(await client().statuses('/login', null, {}, { a: 1 }, 'ann')).toEqual([200, 200, 429, 429])
})

test('All messages of a body must have room, and each value of them counts once.', async () => {
  const { statuses } = client()
  expect(
    await statuses(
      '/batch',
      list('a', 'b', 'a'),
      list('b', 'c'),
      list('a', 'b', 'c'),
      list('a', 'd'),
      list('c'),
    ),
  ).toEqual([200, 200, 200, 429, 200])
  expect(await client().statuses('/batch', list('a', 'b', 'c', 'd'), list('a'))).toEqual([429, 200])
})

test('A request that another policy refuses charges no value, and a refused value charges no other policy.', async () => {
  const { statuses } = client()
  expect(await statuses('/both', 'ann', 'bob', 'cy')).toEqual([200, 200, 429])
  expect(await statuses('/both', 'ann', 'bob')).toEqual([200, 429])

  const other = client()
  expect(await other.statuses('/both', 'ann', 'ann', 'ann', 'bob')).toEqual([200, 200, 200, 429])
  const { decide } = apiOf(gateway.fetch)
  const request = {
    url: 'https://a.example/both',
    method: 'POST',
    ip: other.ip,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'ann' }),
  }
  const { body } = await decide({ request, mode: 'peek' })
  expect(body.limits.map(({ remaining }) => remaining)).toEqual([1, 0])
})

test('In shadow a value is counted, and none is refused.', async () => {
  const { statuses } = client()
  expect(await statuses('/trial', 'ann', 'bob', 'cy')).toEqual([200, 200, 200])
})

test('A value counts only with a response that counts, also if other requests had it before.', async () => {
  const { send } = client()
  const login = async (status: number, user: string) => {
    const answer = await send(`/status/${status}`, undefined, { 'x-user': user })
    await gateway.settled()
    return answer.status
  }
  for (const user of ['ann', 'bob', 'cy', 'dora']) expect(await login(200, user)).toBe(200)
  expect(await login(401, 'eve')).toBe(401)
  expect(await login(200, 'eve')).toBe(200) // takes nothing back of the failure
  expect(await login(401, 'finn')).toBe(401)
  expect(await login(401, 'gus')).toBe(429)
  expect(await login(401, 'eve')).toBe(401)
})

test('During a ban no value passes.', async () => {
  const { statuses } = client()
  expect(await statuses('/banned', 'ann', 'bob', 'ann', 'cy', 'ann')).toEqual([
    200, 429, 200, 429, 429,
  ])
})

test('A cached refusal answers for its value only.', async () => {
  const { statuses } = client()
  await statuses('/login', 'ann', 'bob', 'cy')
  const before = gateway.httpRequests()
  expect(await statuses('/login', 'cy', 'cy')).toEqual([429, 429])
  expect(gateway.httpRequests()).toBe(before)
  expect(await statuses('/login', 'ann')).toEqual([200])
})

test('Concurrent requests of one batch count each value once.', async () => {
  const { send } = client()
  const users = ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b']
  const answers = await Promise.all(users.map((user) => send('/batch', user)))
  expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
  expect((await send('/batch', 'd')).status).toBe(429)
})

test('Redis has no value in clear, and the same value of two clients differs.', async () => {
  const [one, other] = [client(), client()]
  await one.statuses('/login', 'zacharias@example.com')
  await other.statuses('/login', 'zacharias@example.com')
  const redis = await createClient({ url: gateway.redis.url }).connect()
  const nameSubject = hashedSubjects(gateway.bridge.token)
  const members = await Promise.all(
    [one, other].map(async ({ ip }) => {
      const [key] = await redis.keys(`*{${await nameSubject([['ip', ip]])}}:values:*`)
      return redis.zRange(key!, 0, -1)
    }),
  )
  redis.destroy()
  expect(members.flat()).toEqual([
    expect.stringMatching(/^[\w-]{16}$/),
    expect.stringMatching(/^[\w-]{16}$/),
  ])
  expect(members[0]).not.toEqual(members[1])
})

test('A decision by the key counts a value that is not known, and a reset forgets all values.', async () => {
  const { statuses, ip } = client()
  const { decide, operate } = apiOf(gateway.fetch)
  const ask = () => decide({ policy: 'login', key: ip })
  expect(await statuses('/login', 'ann')).toEqual([200])
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 429])
  expect(await statuses('/login', 'ann', 'bob')).toEqual([200, 429])
  const { status } = await operate('login', 'reset', { key: ip })
  expect(status).toBe(200)
  expect(await statuses('/login', 'bob', 'cy', 'ann')).toEqual([200, 200, 429])
})

test('A cost in the decision API counts as many different values.', async () => {
  const { decide } = apiOf(gateway.fetch)
  const ask = async (cost: number) => {
    const { body } = await decide({ policy: 'large', key: 'global', cost })
    return [body.allowed, (body as Decision).limits[0]!.remaining]
  }
  expect(await ask(12)).toEqual([true, 18])
  expect(await ask(12)).toEqual([true, 6])
  expect(await ask(7)).toEqual([false, 6])
  expect(await ask(0)).toEqual([true, 6])
})

test('An idempotency key counts a value once.', async () => {
  const { ip } = client()
  const { decide } = apiOf(gateway.fetch)
  const headers = { 'Idempotency-Key': `distinct-${ip}` }
  for (let time = 0; time < 3; time += 1) {
    const { body } = await decide({ policy: 'login', key: ip }, { headers })
    expect(body.limits[0]!.remaining).toBe(1)
  }
})

test('Without Redis the isolate counts the values by itself, and remembers which one was refused.', async () => {
  const isolate = gateway.start(config, {
    bodies: {},
    env: { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
  })
  const statuses: number[] = []
  for (const username of ['ann', 'ann', 'bob', 'cy', 'ann', 'bob', 'cy']) {
    const { status } = await isolate.fetch('/login', {
      method: 'POST',
      ip: '192.0.2.99',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username }),
    })
    statuses.push(status)
  }
  expect(statuses).toEqual([200, 200, 200, 429, 200, 200, 429])
})
