import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { ok, type RequestOptions, type Scenarios, withToken } from './client.ts'

/** Scenarios for costs, outcomes, penalties, plans, calendar quotas and concurrency. */
export const costs: Scenarios = {
  async 'costs-by-bytes'({ send }) {
    const { field, remaining, body } = await send('/files/a')
    expect(field('ratelimit-policy')).toBe('"egress";q=100000000;qu="content-bytes";w=600')
    expect(remaining).toBe(99_999_999)
    const bytes = Buffer.byteLength(`${JSON.stringify(body, null, 2)}\n`)
    expect(bytes).toBeGreaterThan(100)
    const after = async () => (await send('HEAD /files/a')).remaining!
    await expect.poll(after).toBeLessThanOrEqual(99_999_999 - bytes)
    // Each HEAD gets its byte back.
    expect(await after()).toBeGreaterThan(99_999_999 - bytes - 50)
  },

  async wait({ send }) {
    const begun = Date.now()
    const answers = await Promise.all(Array.from({ length: 14 }, () => send('/')))
    expect(answers.map(({ status }) => status)).toEqual(ok(14))
    expect(Date.now() - begun).toBeGreaterThanOrEqual(300)
    const waited = answers.filter(({ field }) => field('server-timing'))
    expect(waited.length).toBeGreaterThan(0)
  },

  async 'reserve-by-path'({ remaining }) {
    const prefetch = { headers: { 'sec-purpose': 'prefetch;prerender' } }
    const left = await remaining('/cart/1', ['/products', prefetch], '/products')
    // The bucket regains ten tokens a second.
    const expected = [599, 598 - 300, 597 - 120]
    for (const [index, units] of left.entries()) {
      expect(units).toBeGreaterThanOrEqual(expected[index]!)
      expect(units).toBeLessThan(expected[index]! + 20)
    }
  },

  async penalties({ send }) {
    const problems = new Set<unknown>()
    for (let burst = 0; burst < 5 && problems.size < 2; burst++) {
      const all = await Promise.all(Array.from({ length: 40 }, () => send('/')))
      for (const { status, body } of all) if (status === 429) problems.add(body.title)
    }
    expect([...problems].sort()).toEqual(['Abnormal usage detected', 'Quota exceeded'])
    await sleep(1100)
    const { status, field, body } = await send('/')
    expect([status, body['violated-policies']]).toEqual([429, ['per-ip']])
    expect(Number(field('retry-after'))).toBeGreaterThan(200)
    expect((await send('/', { ip: '192.0.2.1' })).status).toBe(200)
  },

  async plans({ remaining }) {
    expect(
      await remaining(
        ['/api/a', await withToken({ sub: 'ann', plan: 'pro' })],
        ['/api/a', await withToken({ sub: 'ann', plan: 'free' })], // the same user after a downgrade
        ['/api/a', await withToken({ sub: 'bob', plan: 'free' })],
        ['/api/a', await withToken({ sub: 'cat', plan: 'gold' })],
        '/api/a',
      ),
    ).toEqual([4999, 98, 99, 9, 9])
    const tenants = await Promise.all(
      ['acme', 'globex', 'initech'].map((tenant) => withToken({ tenant })),
    )
    const perTenant = tenants.map((token): [string, RequestOptions] => ['/tenants/a', token])
    expect(await remaining(...perTenant)).toEqual([19_999, 199, 49])
  },

  async concurrency({ send, statuses }) {
    const slow = Array.from({ length: 5 }, () => send('/reports/7?answer-after=1500'))
    const answers = await Promise.all(slow)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(3)
    expect(refused[0]!.field('ratelimit-policy')).toBe('"reports";q=2;qu="concurrent-requests"')
    expect(refused[0]!.field('ratelimit')).toBe('"reports";r=0')
    expect(refused[0]!.field('retry-after')).toBeUndefined()
    const { detail, retryAfterMs } = refused[0]!.body
    expect(retryAfterMs).toBeGreaterThan(500_000)
    expect(detail).toBe(
      'Too many requests are in flight. Try again when one of them ends, or in 10 minutes.',
    )
    await expect.poll(async () => (await send('/reports/8')).remaining).toBe(1)
    await sleep(300)
    expect(await statuses(1, '/reports/8')).toEqual([200])
  },
}
