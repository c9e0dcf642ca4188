import { expect } from 'vitest'
import { ok, type RequestOptions, running, type Scenarios, withHeaders } from './client.ts'

/** Scenarios for match conditions, spellings of a path, and lists. */
export const requests: Scenarios = {
  async match({ send, remaining }) {
    const shop = 'https://eu.shop.example.com/'
    const agent = (name: string, ip = '203.0.113.7'): RequestOptions => ({
      ip,
      cf: { country: 'DE' },
      headers: { 'user-agent': name },
    })
    expect(
      await remaining(
        [shop, agent('Mozilla/5.0 (compatible; ExampleBot/2.1)')],
        ['https://shop.example.com/', agent('a Crawler', '192.0.2.1')],
        [shop, agent('Mozilla/5.0')],
        [shop, agent('ExampleBot', '198.51.100.9')],
        ['https://www.example.com/', agent('ExampleBot')],
        ['https://example.com/', agent('ExampleBot')],
      ),
    ).toEqual([9, 8, undefined, undefined, undefined, undefined])

    const austria = { cf: { country: 'at' } }
    const policiesOf = async (target: string, options: RequestOptions = austria) =>
      (await send(target, options)).field('ratelimit-policy')?.match(/"[^"]+"/g)
    expect(await policiesOf('/api/things')).toEqual(['"api"'])
    expect(await policiesOf('/api')).toEqual(['"api"'])
    expect(await policiesOf('/api/health')).toBeUndefined()
    expect(await policiesOf('HEAD /api/health')).toBeUndefined()
    expect(await policiesOf('POST /api/health')).toEqual(['"api"'])
    expect(await policiesOf('/apis')).toBeUndefined()
    expect(await policiesOf('DELETE /api/things/7')).toEqual(['"api"', '"api-deletes"'])
    expect(await policiesOf('/', { cf: { country: 'FR' } })).toEqual(['"abroad"'])
    expect(await policiesOf('/', { cf: {} })).toEqual(['"abroad"'])
    expect(await policiesOf('/', { cf: {}, headers: { 'cf-ipcountry': 'DE' } })).toEqual([
      '"abroad"',
    ])
  },

  async 'case-sensitive'({ remaining }) {
    expect(await remaining('/s/aB', '/s/%61B/', '/s/ab', '/S/aB')).toEqual([99, 98, 99, undefined])
  },

  async exempt({ send, statuses }) {
    const requests = running.stack.httpRequests()
    for (const ip of ['192.0.2.20', '2001:db8:ff1::1', '::ffff:192.0.2.20']) {
      const { status, field } = await send('/reports/7', { ip })
      expect([ip, status, field('ratelimit-policy')]).toEqual([ip, 200, undefined])
    }
    expect(running.stack.httpRequests()).toBe(requests)
    expect(await statuses(2, '/reports/7')).toEqual([200, 429])
    expect(await statuses(3, '/reports/7', { ip: '203.0.113.80' })).toEqual(ok(3))
  },

  async deny({ send }) {
    const requests = running.stack.httpRequests()
    const denied = async (target: string, options: RequestOptions) =>
      (await send(target, options)).status === 403
    expect(await denied('/', { ip: '192.0.2.1' })).toBe(true) // `deny` wins over `allow`
    expect(await denied('/', { ip: '2001:db8:bad:7::1' })).toBe(true)
    expect(await denied('/Appeal/', { ip: '192.0.2.1' })).toBe(false)
    expect(await denied('/./Appeal/', { ip: '192.0.2.1' })).toBe(true) // some origins read the path as it was sent
    expect(await denied('//appeal/', { ip: '192.0.2.1' })).toBe(true) // or the root of a host "appeal"
    expect(await denied('/', { ip: '192.0.2.10' })).toBe(false)
    expect(running.stack.httpRequests()).toBe(requests) // `allow` matches both requests, so there is no call
    expect(await denied('/', { ip: '192.0.3.1' })).toBe(false)

    const agent = (name: string) => withHeaders({ 'user-agent': name })
    expect(await denied('/', agent('Scrapy/2.11 (+https://scrapy.org)'))).toBe(true)
    expect(await denied('/robots.txt', agent('python-requests/2.32'))).toBe(false)
    expect(await denied('/', agent('my python-requests/2.32'))).toBe(false)
    expect(await denied('POST /sign-up', { cf: { country: 'T1' } })).toBe(true)
    expect(await denied('/sign-up', { cf: { country: 'T1' } })).toBe(false)

    const { body, field } = await send('/', { ip: '192.0.2.1' })
    expect(field('cache-control')).toBe('no-store')
    expect(body).toEqual({
      type: 'about:blank',
      status: 403,
      title: 'Forbidden',
      detail: 'The request is on a deny list.',
    })
  },
}
