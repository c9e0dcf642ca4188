/** Policies with a reserve in the decision API. */
import { expect, test } from 'vitest'
import { useApi } from '../../support/api-stack.ts'
import { newIp, policy, request } from './decide-api.ts'

const api = useApi({
  policies: [
    {
      ...policy,
      name: 'shop',
      limit: 5,
      reserve: [{ match: { path: '/checkout/*' }, share: 0 }, { share: 0.4 }],
    },
  ],
})

test('A decision leaves the reserve free for requests without a floor, and reports it.', async () => {
  const ip = newIp()
  for (const remaining of [2, 1, 0]) {
    const { body } = await api.decide(request(ip, '/a'))
    expect(body).toMatchObject({ allowed: true, limits: [{ limit: 5, remaining, reserved: 2 }] })
  }
  const refused = await api.decide(request(ip, '/a'))
  expect(refused.body).toMatchObject({ allowed: false, limits: [{ remaining: 0, reserved: 2 }] })
  expect(refused.body.retryAfterMs).toBeGreaterThan(3_500_000)
  expect(refused.headers.get('ratelimit')).toContain('r=0')
  for (const remaining of [1, 0]) {
    const { body } = await api.decide(request(ip, '/checkout/pay'))
    expect(body).toMatchObject({ allowed: true, limits: [{ remaining }] })
    expect(body.limits[0]).not.toHaveProperty('reserved')
  }
  expect((await api.decide(request(ip, '/checkout/pay'))).body.allowed).toBe(false)
})

test('A refusal because of the reserve is not repeated for a request that may use it.', async () => {
  const ip = newIp()
  const statusOf = async (path: string) => (await api.fetch(path, { ip })).status
  const statuses: number[] = []
  for (const path of [...Array(5).fill('/a'), ...Array(3).fill('/checkout/pay')]) {
    statuses.push(await statusOf(path))
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429, 200, 200, 429])
})

test('For a decision by key the rule for every request counts, and a peek of operators shows the whole quota.', async () => {
  const key = newIp()
  const { body } = await api.decide({ policy: 'shop', key, cost: 3 })
  expect(body).toMatchObject({ allowed: true, limits: [{ remaining: 0, reserved: 2 }] })
  expect((await api.decide({ policy: 'shop', key })).body.allowed).toBe(false)
  const peeked = await api.operate<{ limits: object[] }>('shop', 'peek', { key })
  expect(peeked.body.limits).toMatchObject([{ remaining: 2 }])
  expect(peeked.body.limits[0]).not.toHaveProperty('reserved')
})

test('try reports the floor of a request.', async () => {
  const tried = async (path: string) =>
    (await api.operate<object>('shop', 'try', request(newIp(), path))).body
  expect(await tried('/a')).toMatchObject({ met: true, limit: 5, cost: 1, floor: 2 })
  expect(await tried('/checkout/pay')).not.toHaveProperty('floor')
})
