import { expect } from 'vitest'
import { ok, type RequestOptions, type Scenarios, withHeaders } from './client.ts'

/** Scenarios for keys, and for the complete configuration of the README. */
export const quotas: Scenarios = {
  async first({ send, remaining }) {
    const { field } = await send('/')
    expect(field('ratelimit-policy')).toBe('"per-ip";q=100;w=60, "per-ip-daily";q=10000;w=86400')
    expect(await remaining('/', ['/', { ip: '192.0.2.1' }], '/')).toEqual([98, 99, 97])
  },

  async login({ send, statuses }) {
    expect(await statuses(5, 'POST /login')).toEqual(ok(5))
    for (const spelling of [
      '/login',
      '//login',
      '/login/',
      '/./login',
      '/x/../login',
      '/../login',
      '/%6Cogin',
      '/%6cogin',
      '/login%2F',
      '/x%2F..%2Flogin',
      '/x/%2E%2e/login',
      '/login;a=1',
      '/x;y/../login',
      '/login%3Ba',
      '/x\\..\\login',
      '/%5Clogin',
      '/LOGIN',
      '/%4Cogin',
      '/login?next=/',
    ]) {
      expect([spelling, await statuses(1, `POST ${spelling}`)]).toEqual([spelling, [429]])
    }
    for (const other of ['/%256Cogin', '/login.php', '/log%C3%ADn']) {
      const { status, policy } = await send(`POST ${other}`)
      expect([other, status, policy]).toEqual([other, 200, undefined])
    }
    const refused = await send('POST //LOGIN/')
    expect(refused.field('ratelimit-policy')).toBe('"login";q=5;w=60')
    expect(refused.field('ratelimit')).toBe(`"login";r=0;t=${refused.field('retry-after')}`)
    expect(refused.body['violated-policies']).toEqual(['login'])

    expect((await send('POST /password/reset')).remaining).toBe(4)
    expect((await send('POST /login', { ip: '192.0.2.1' })).remaining).toBe(4)
    expect((await send('/login')).policy).toBeUndefined()
  },

  async 'per-user'({ send, remaining }) {
    const targets = ['/users/7', '/users/7/orders', '/Users/%37', '/users/7;x/a', '/users/8']
    expect(await remaining(...targets)).toEqual([59, 58, 57, 56, 59])
    expect(await remaining(['/users/7', { ip: '192.0.2.1' }])).toEqual([55])
    expect((await send('/users')).policy).toBeUndefined()
    // Two readings: the request is charged to both users, and `RateLimit` reports the lower number.
    expect(await remaining('/users/8/..%2Fa1%2Fx', '/users/a1', '/users/8')).toEqual([58, 58, 57])
  },

  async networks({ send, remaining }) {
    const from = (ip: string): [string, RequestOptions] => ['/', { ip }]
    const v4 = await remaining(from('198.51.100.1'), from('198.51.100.200'), from('198.51.101.1'))
    expect(v4).toEqual([299, 298, 299])
    const v6 = await remaining(
      from('2001:db8:1:2::3'),
      from('2001:db8:1:ffff::'),
      from('2001:db8:2::3'),
    )
    expect(v6).toEqual([299, 298, 299])
    expect(await remaining(from('::ffff:198.51.100.9'))).toEqual([297])

    // Each sign-up comes from another network, so `RateLimit` reports the country from the second one on.
    const signUp = (country: string, network: number): [string, RequestOptions] => [
      'POST /sign-up',
      { ip: `100.64.${network}.1`, cf: { country } },
    ]
    expect(await remaining(signUp('DE', 1), signUp('DE', 2), signUp('DE', 3))).toEqual([
      299, 498, 497,
    ])
    expect(await remaining(signUp('FR', 4), signUp('FR', 5))).toEqual([299, 498])
    expect((await send(...signUp('DE', 6))).policy).toBe('sign-ups')
  },

  async parts({ send, remaining, statuses }) {
    expect(await statuses(4, '/search?q=a%20b&page=2')).toEqual([...ok(3), 429])
    expect((await send('/search?page=3&q=a+b')).status).toBe(429)
    expect(await remaining('/search?q=c', ['/search?q=a+b', { ip: '192.0.2.1' }])).toEqual([2, 2])

    const session = (cookie: string, ip: string): [string, RequestOptions] => [
      '/basket',
      { ip, headers: { cookie } },
    ]
    const baskets = [
      session('session=x; a=b', '192.0.2.2'),
      session('session=x', '192.0.2.3'),
      session('session=y', '192.0.2.3'),
      session('session=x; session=y', '192.0.2.3'), // two different values: by address
      session('a=b', '192.0.2.3'),
    ]
    expect(await remaining(...baskets)).toEqual([29, 28, 29, 29, 28])

    const partner = (name: string) => withHeaders({ 'x-partner': name })
    expect(await remaining(['/feed', partner('acme')], ['/feed', partner('acme')])).toEqual([
      49, 48,
    ])
    expect(await remaining(['/feed', partner('globex')])).toEqual([49])
    for (const options of [{}, partner('')]) {
      const { status, field, policy, body } = await send('/feed', options)
      expect([status, policy, field('cache-control')]).toEqual([403, undefined, 'no-store'])
      expect(field('content-type')).toBe('application/problem+json')
      expect(body).toEqual({
        type: 'about:blank',
        status: 403,
        title: 'Forbidden',
        detail: 'The request lacks header:x-partner.',
      })
    }

    const sites = [
      'https://a.shops.example/',
      'https://A.shops.example:8443/x',
      'POST https://a.shops.example/',
      'https://b.shops.example/',
      'https://shops.example/',
    ]
    expect(await remaining(...sites)).toEqual([4999, 4998, 4999, 4999, undefined])

    const network = (asn?: number): [string, RequestOptions] => ['/sign-up', { cf: { asn } }]
    expect(await remaining(network(64500), network(64500), network(64501), network())).toEqual([
      19,
      18,
      19,
      undefined,
    ])
    const colo = (colo: string): [string, RequestOptions] => ['/tiles/7/3', { cf: { colo } }]
    expect(await remaining(colo('FRA'), colo('FRA'), colo('AMS'))).toEqual([399, 398, 399])
    expect(await remaining('/print', ['/print', { ip: '192.0.2.4' }])).toEqual([9, 8])
  },
}
