import { expect } from 'vitest'
import { type Asked, ok, type Scenarios } from './client.ts'

/** The examples of README.md, and those about whose quota a request counts on. */
export const quotas: Scenarios = {
  async complete({ ask, left, statuses }) {
    expect(await statuses(1, '/', { ip: '192.0.2.1' })).toEqual([403])
    expect((await ask('/api/export/7', { ip: '198.51.100.9' })).policy).toBeUndefined()
    const key = { headers: { 'x-api-key': 'alpha' } }
    expect(await left(['/api/export/7', key], ['/api/things', key], ['/api/things'])).toEqual([
      80, 79, 99,
    ])
    expect((await ask('/api/health', key)).policy).toBeUndefined()
    expect(await statuses(6, 'POST //LOGIN')).toEqual([...ok(5), 429])
    expect(await statuses(4, 'POST /sign-up')).toEqual(ok(4))
    expect((await ask('POST /sign-up')).body.headers!['sluice-shadow']).toBe('"sign-up"')
  },

  async first({ ask, left }) {
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"per-ip";q=100;w=60, "per-ip-daily";q=10000;w=86400')
    expect(await left(['/'], ['/', { ip: '192.0.2.1' }], ['/'])).toEqual([98, 99, 97])
  },

  async login({ ask, statuses }) {
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
    for (const other of ['/%256Cogin', '/login.php', '/login%00', '/login%20', '/log%C3%ADn']) {
      const { status, policy } = await ask(`POST ${other}`)
      expect([other, status, policy]).toEqual([other, 200, undefined])
    }
    const refused = await ask('POST //LOGIN/')
    expect(refused.field('ratelimit-policy')).toBe('"login";q=5;w=60')
    expect(refused.field('ratelimit')).toBe(`"login";r=0;t=${refused.field('retry-after')}`)
    expect(refused.body['violated-policies']).toEqual(['login'])

    expect((await ask('POST /password/reset')).left).toBe(4)
    expect((await ask('POST /login', { ip: '192.0.2.1' })).left).toBe(4)
    expect((await ask('/login')).policy).toBeUndefined()
  },

  async 'per-user'({ ask, left }) {
    const targets = ['/users/7', '/users/7/orders', '/Users/%37', '/users/7;x/a', '/users/8']
    expect(await left(...targets.map((target): [string] => [target]))).toEqual([59, 58, 57, 56, 59])
    expect(await left(['/users/7', { ip: '192.0.2.1' }])).toEqual([55])
    expect((await ask('/users')).policy).toBeUndefined()
    // Two readings: charged to both users, and told as the one with less left.
    expect(await left(['/users/8/..%2Fa1%2Fx'], ['/users/a1'], ['/users/8'])).toEqual([58, 58, 57])
  },

  async 'per-key'({ ask, left }) {
    const key = (name: string): Asked => ({ headers: { 'x-api-key': name } })
    const bearer = { headers: { authorization: 'Bearer alpha' }, ip: '192.0.2.1' }
    expect(await left(['/', key('alpha')], ['/', bearer], ['/', key('beta')])).toEqual([99, 98, 99])
    // Without a key by address; and all keys of an address also count together.
    expect(await left(['/'], ['/'], ['/', { ip: '192.0.2.2' }])).toEqual([99, 98, 99])
    const { field } = await ask('/')
    expect(field('ratelimit-policy')).toBe('"per-key";q=100;w=60, "per-ip";q=1000;w=60')
  },

  async networks({ ask, left }) {
    const from = (ip: string): [string, Asked] => ['/', { ip }]
    const v4 = await left(from('198.51.100.1'), from('198.51.100.200'), from('198.51.101.1'))
    expect(v4).toEqual([299, 298, 299])
    const v6 = await left(from('2001:db8:1:2::3'), from('2001:db8:1:ffff::'), from('2001:db8:2::3'))
    expect(v6).toEqual([299, 298, 299])
    expect(await left(from('::ffff:198.51.100.9'))).toEqual([297])

    // Each sign-up from another network, so that the country is nearest to exhaustion from the second on.
    const signUp = (country: string, network: number): [string, Asked] => [
      'POST /sign-up',
      { ip: `100.64.${network}.1`, cf: { country } },
    ]
    expect(await left(signUp('DE', 1), signUp('DE', 2), signUp('DE', 3))).toEqual([299, 498, 497])
    expect(await left(signUp('FR', 4), signUp('FR', 5))).toEqual([299, 498])
    expect((await ask(...signUp('DE', 6))).policy).toBe('sign-ups')
  },

  async parts({ ask, left, statuses }) {
    expect(await statuses(4, '/search?q=a%20b&page=2')).toEqual([...ok(3), 429])
    expect((await ask('/search?page=3&q=a+b')).status).toBe(429)
    expect(await left(['/search?q=c'], ['/search?q=a+b', { ip: '192.0.2.1' }])).toEqual([2, 2])

    const session = (cookie: string, ip: string): [string, Asked] => [
      '/basket',
      { ip, headers: { cookie } },
    ]
    const baskets = [
      session('session=x; a=b', '192.0.2.2'),
      session('session=x', '192.0.2.3'),
      session('session=y', '192.0.2.3'),
      session('session=x; session=y', '192.0.2.3'), // which of the two: by address
      session('a=b', '192.0.2.3'),
    ]
    expect(await left(...baskets)).toEqual([29, 28, 29, 29, 28])

    const partner = (name: string): Asked => ({ headers: { 'x-partner': name } })
    expect(await left(['/feed', partner('acme')], ['/feed', partner('acme')])).toEqual([49, 48])
    expect(await left(['/feed', partner('globex')])).toEqual([49])
    for (const asked of [{}, partner('')]) {
      const { status, field, policy, body } = await ask('/feed', asked)
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
    expect(await left(...sites.map((site): [string] => [site]))).toEqual([
      4999,
      4998,
      4999,
      4999,
      undefined,
    ])

    const network = (asn?: number): [string, Asked] => ['/sign-up', { cf: { asn } }]
    expect(await left(network(64500), network(64500), network(64501), network())).toEqual([
      19,
      18,
      19,
      undefined,
    ])
    const colo = (colo: string): [string, Asked] => ['/tiles/7/3', { cf: { colo } }]
    expect(await left(colo('FRA'), colo('FRA'), colo('AMS'))).toEqual([399, 398, 399])
    expect(await left(['/print'], ['/print', { ip: '192.0.2.4' }])).toEqual([9, 8])
  },
}
