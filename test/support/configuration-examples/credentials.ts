import { generateSignedCookie } from 'hono/cookie'
import { expect } from 'vitest'
import { forge, json, signer } from '../issuer.ts'
import {
  env,
  type RequestOptions,
  running,
  type Scenarios,
  withBearer,
  withHeaders,
  withKey,
  withToken,
} from './client.ts'

/** Scenarios for credentials and key functions. */
export const credentials: Scenarios = {
  async tenants({ send, remaining, statuses }) {
    const token = (claims: object, secret?: string) =>
      withToken({ iss: 'https://login.example.com', aud: 'api', ...claims }, secret)
    expect(
      await remaining(
        ['/api/things', await token({ sub: 'ann', tenant: 'acme' })],
        ['/api/things', await token({ sub: 'bob', tenant: 'acme' })],
        ['/api/things', await token({ sub: 'cat', tenant: 'globex' })],
      ),
    ).toEqual([999, 998, 999])
    const unverified: RequestOptions[] = [
      await token({ tenant: 'acme' }, 'another secret of at least 32 bytes'),
      await token({ tenant: 'acme', aud: 'shop' }),
      await token({ tenant: 'acme', iss: 'https://evil.example' }),
      await token({ tenant: 'acme', exp: Math.floor(Date.now() / 1000) - 60 }),
      withHeaders({ authorization: `Bearer ${forge({ alg: 'none' }, { tenant: 'acme' })}` }),
    ]
    for (const options of [{}, await token({ sub: 'ann' })]) {
      const { status, body } = await send('/api/things', options)
      expect([status, body.detail]).toEqual([403, 'The request lacks jwt:tenant.'])
    }
    for (const options of unverified) {
      const { status, body } = await send('/api/things', options)
      expect([status, body.detail]).toEqual([403, 'The token could not be verified.'])
    }
    expect(await statuses(1, '/')).toEqual([200])
  },

  async issuer({ remaining }) {
    const issuer = await signer('ES256', 'key-1')
    const claims = { iss: 'https://login.example.com', aud: 'https://www.example.com', sub: 'ann' }
    const otherIssuer = await signer('ES256', 'key-1')
    running.issuer.answer = json({ keys: [issuer.jwk] })
    running.issuer.fetches = 0
    const cookie = { ip: '192.0.2.1', headers: { cookie: `session=${await issuer.sign(claims)}` } }
    expect(
      await remaining(
        ['/', await withBearer(issuer.sign(claims))],
        ['/', cookie],
        ['/', await withBearer(otherIssuer.sign(claims))],
        '/',
        ['/', await withBearer(issuer.sign({ ...claims, iss: 'https://evil.example' }))],
      ),
    ).toEqual([59, 58, 59, 58, 57])
    expect(running.issuer.fetches).toBe(1)
  },

  async 'anonymous-by-key'({ remaining }) {
    expect(await remaining('/', ['/', withKey('alpha')], ['/', withKey('invented')], '/')).toEqual([
      29,
      undefined,
      28,
      27,
    ])
  },

  async 'known-keys'({ send, remaining }) {
    expect(await remaining(['/', withKey('alpha')], ['/', withKey('alpha')])).toEqual([999, 998])
    for (const [options, detail] of [
      [withKey('invented'), 'The API key is not known.'],
      [withKey('alpha, alpha'), 'The request has no single readable value of api-key.'],
      [{}, 'The request lacks api-key.'],
    ] as const) {
      const { status, body } = await send('/', options)
      expect([status, body.detail]).toEqual([403, detail])
    }
  },

  async 'trusted-proxy'({ send, remaining }) {
    const completion = (headers: Record<string, string>): [string, RequestOptions] => [
      'POST /v1/completions',
      { headers: { 'X-Customer': 'acme', ...headers } },
    ]
    const token = { 'Sluice-Token': env.SLUICE_PROXY_TOKEN }
    expect(
      await remaining(
        completion({ ...token, 'Sluice-Cost': '42' }),
        completion(token),
        completion({ 'Sluice-Cost': '1' }),
        completion({ 'Sluice-Cost': '1', 'Sluice-Token': 'a-token-that-is-none' }),
        completion({ ...token, 'Sluice-Cost': '-8' }),
        completion({ ...token, 'Sluice-Cost': '0' }),
      ),
    ).toEqual([9958, 9458, 8958, 8458, 7958, 7958])
    const { body, status } = await send(...completion({ ...token, 'Sluice-Cost': '7959' }))
    expect([status, body.title]).toEqual([429, 'Quota exceeded'])
    const { body: echo } = await send(...completion({ ...token, 'Sluice-Cost': '1' }))
    expect(Object.keys(echo.headers!).filter((name) => name.startsWith('sluice'))).toEqual([])
  },

  async 'key-function'({ send, remaining }) {
    const cookie = await generateSignedCookie('user', 'ann', env.SESSION_SECRET)
    const ann = { headers: { cookie: cookie.split(';')[0]! } }
    const forged = { headers: { cookie: ann.headers.cookie.replace('ann', 'bob') } }
    expect((await send('/', ann)).body.text).toBe('Hello ann.')
    expect(await remaining(['/', ann], ['/', { ...ann, ip: '192.0.2.1' }])).toEqual([58, 57])
    expect((await send('/', forged)).body.text).toBe('Hello stranger.')
    expect(await remaining(['/', forged], '/', ['/', { ip: '192.0.2.2' }])).toEqual([58, 57, 59])
  },
}
