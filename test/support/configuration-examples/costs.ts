import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { sign } from '../issuer.ts'
import { type Asked, env, ok, type Scenarios } from './client.ts'

/** The examples of costs, outcomes, penalties, plans, calendars and concurrency. */
export const costs: Scenarios = {
  async exports({ ask, left, statuses }) {
    const key: Asked = { headers: { 'x-api-key': 'alpha' } }
    const deep: Asked = { headers: { 'x-api-key': 'alpha', 'X-Depth': 'full' } }
    expect(
      await left(
        ['/api/export/7', key],
        ['/API/export//7', key],
        ['/api/search', key],
        ['/api/search', deep],
        ['POST /api/things', key],
        ['POST /api/export/7', key],
        ['/api/quota', key],
      ),
    ).toEqual([75, 50, 49, 44, 42, 17, 17])
    const { status, left: rest, field } = await ask('/api/export/7', key)
    expect([status, rest]).toEqual([429, 17])
    expect(Number(field('retry-after'))).toBeGreaterThan(0)
    expect(await statuses(17, '/api/things', key)).toEqual(ok(17))
    expect(await statuses(2, '/api/quota', key)).toEqual(ok(2))
    expect((await ask('/api/quota')).body.detail).toBe('The request lacks api-key.')
  },

  async outcomes({ ask, left, statuses }) {
    const failing = 'POST /login?answer-status=401'
    expect(await statuses(3, 'POST /login')).toEqual(ok(3))
    await expect.poll(async () => (await ask('POST /login')).left, { timeout: 10_000 }).toBe(4)
    await sleep(500)
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(failing)))
    expect(all.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(await statuses(1, 'POST /login')).toEqual([429])

    const completion = '/v1/completions?answer-header=x-tokens:20'
    const dear = (await ask(completion)).left!
    expect(dear).toBe(9500)
    // Tokens also come back by time, three a second.
    await expect
      .poll(async () => (await left([completion]))[0], { timeout: 10_000, interval: 500 })
      .toBeGreaterThan(9300)
  },

  async penalties({ ask }) {
    const problems = new Set<unknown>()
    for (let burst = 0; burst < 5 && problems.size < 2; burst++) {
      const all = await Promise.all(Array.from({ length: 40 }, () => ask('/')))
      for (const { status, body } of all) if (status === 429) problems.add(body.title)
    }
    expect([...problems].sort()).toEqual(['Abnormal usage detected', 'Quota exceeded'])
    await sleep(1100)
    const { status, field, body } = await ask('/')
    expect([status, body['violated-policies']]).toEqual([429, ['per-ip']])
    expect(Number(field('retry-after'))).toBeGreaterThan(200)
    expect((await ask('/', { ip: '192.0.2.1' })).status).toBe(200)
  },

  async plans({ ask, left }) {
    const by = async (claims: object): Promise<Asked> => {
      const token = await sign(claims, { alg: 'HS256' }, Buffer.from(env.JWT_SECRET))
      return { headers: { authorization: `Bearer ${token}` } }
    }
    expect(
      await left(
        ['/api/a', await by({ sub: 'ann', plan: 'pro' })],
        ['/api/a', await by({ sub: 'ann', plan: 'free' })], // who has changed to a smaller one
        ['/api/a', await by({ sub: 'bob', plan: 'free' })],
        ['/api/a', await by({ sub: 'cat', plan: 'gold' })],
        ['/api/a'],
      ),
    ).toEqual([4999, 98, 99, 9, 9])
    const tenants = ['acme', 'globex', 'initech']
    const told = await Promise.all(
      tenants.map(async (tenant) => (await ask('/tenants/a', await by({ tenant }))).left),
    )
    expect(told).toEqual([19_999, 199, 49])
  },

  async calendar({ ask }) {
    const key: Asked = { headers: { 'x-api-key': 'alpha' } }
    const { field } = await ask('/', key)
    expect(field('ratelimit-policy')).toMatch(
      /^"monthly";q=10000;w=2[4-7]\d{5}, "daily";q=500;w=86400$/,
    )
    const keyed = await Promise.all(Array.from({ length: 5 }, () => ask('/', key)))
    expect(keyed.every(({ status }) => status === 200)).toBe(true)
    const wait = Number(/;t=(\d+)/.exec((await ask('/')).field('ratelimit')!)![1])
    const midnight = new Date(Date.now() + wait * 1000 - 500).toISOString()
    expect(midnight).toMatch(/T(00:00:0|23:59:59)/)
  },

  async concurrency({ ask, statuses }) {
    const slow = Array.from({ length: 5 }, () => ask('/reports/7?answer-after=1500'))
    const answers = await Promise.all(slow)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(3)
    expect(refused[0]!.field('ratelimit-policy')).toBe('"reports";q=2;qu="concurrent-requests"')
    expect(refused[0]!.field('ratelimit')).toBe('"reports";r=0')
    expect(refused[0]!.field('retry-after')).toBeUndefined()
    const { detail, retryAfterMs } = refused[0]!.body
    expect(retryAfterMs).toBeGreaterThan(500_000)
    expect(detail).toBe(
      `Too many requests are in flight. Try again when one of them ends, or in ${retryAfterMs} ms.`,
    )
    await expect.poll(async () => (await ask('/reports/8')).left, { timeout: 10_000 }).toBe(1)
    await sleep(300)
    expect(await statuses(1, '/reports/8')).toEqual([200])
  },
}
