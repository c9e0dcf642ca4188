import { generateSignedCookie } from 'hono/cookie'
import { expect } from 'vitest'
import { forge, json, sign, signer } from '../issuer.ts'
import { type Asked, env, running, type Scenarios } from './client.ts'

/** The examples of credentials, and of key functions. */
export const credentials: Scenarios = {
  async tenants({ ask, left, statuses }) {
    const by = async (claims: object, secret = env.JWT_SECRET): Promise<Asked> => {
      const standard = { iss: 'https://login.example.com', aud: 'api' }
      const token = await sign({ ...standard, ...claims }, { alg: 'HS256' }, Buffer.from(secret))
      return { headers: { authorization: `Bearer ${token}` } }
    }
    const users = [
      await by({ sub: 'ann', tenant: 'acme' }),
      await by({ sub: 'bob', tenant: 'acme' }),
      await by({ sub: 'cat', tenant: 'globex' }),
    ]
    expect(await left(...users.map((user): [string, Asked] => ['/api/things', user]))).toEqual([
      999, 998, 999,
    ])
    const unverified: Asked[] = [
      await by({ tenant: 'acme' }, 'another secret of at least 32 bytes'),
      await by({ tenant: 'acme', aud: 'shop' }),
      await by({ tenant: 'acme', iss: 'https://evil.example' }),
      await by({ tenant: 'acme', exp: Math.floor(Date.now() / 1000) - 60 }),
      { headers: { authorization: `Bearer ${forge({ alg: 'none' }, { tenant: 'acme' })}` } },
    ]
    for (const asked of [{}, await by({ sub: 'ann' })]) {
      const { status, body } = await ask('/api/things', asked)
      expect([status, body.detail]).toEqual([403, 'The request lacks jwt:tenant.'])
    }
    for (const asked of unverified) {
      const { status, body } = await ask('/api/things', asked)
      expect([status, body.detail]).toEqual([403, 'The token could not be verified.'])
    }
    expect(await statuses(1, '/')).toEqual([200])
  },

  async issuer({ left }) {
    const ann = await signer('ES256', 'key-1')
    const claims = { iss: 'https://login.example.com', aud: 'https://www.example.com', sub: 'ann' }
    const stranger = await signer('ES256', 'key-1')
    running.issuer.answer = json({ keys: [ann.jwk] })
    const bearer = async (token: Promise<string>): Promise<Asked> => ({
      headers: { authorization: `Bearer ${await token}` },
    })
    const cookie = { ip: '192.0.2.1', headers: { cookie: `session=${await ann.sign(claims)}` } }
    expect(
      await left(
        ['/', await bearer(ann.sign(claims))],
        ['/', cookie],
        ['/', await bearer(stranger.sign(claims))],
        ['/'],
        ['/', await bearer(ann.sign({ ...claims, iss: 'https://evil.example' }))],
      ),
    ).toEqual([59, 58, 59, 58, 57])
    expect(running.issuer.fetches).toBe(1)
  },

  async 'known-keys'({ ask, left }) {
    const key = (name: string): Asked => ({ headers: { 'x-api-key': name } })
    expect(await left(['/', key('alpha')], ['/', key('alpha')])).toEqual([999, 998])
    for (const [asked, detail] of [
      [key('invented'), 'The API key is not known.'],
      [key('alpha, alpha'), 'The request has no single readable value of api-key.'],
      [{}, 'The request lacks api-key.'],
    ] as const) {
      const { status, body } = await ask('/', asked)
      expect([status, body.detail]).toEqual([403, detail])
    }
  },

  async 'trusted-proxy'({ ask, left }) {
    const said = (headers: Record<string, string>): [string, Asked] => [
      'POST /v1/completions',
      { headers: { 'X-Customer': 'acme', ...headers } },
    ]
    const token = { 'Sluice-Token': env.SLUICE_PROXY_TOKEN }
    expect(
      await left(
        said({ ...token, 'Sluice-Cost': '42' }),
        said(token),
        said({ 'Sluice-Cost': '1' }),
        said({ 'Sluice-Cost': '1', 'Sluice-Token': 'a-token-that-is-none' }),
        said({ ...token, 'Sluice-Cost': '-8' }),
        said({ ...token, 'Sluice-Cost': '0' }),
      ),
    ).toEqual([9958, 9458, 8958, 8458, 7958, 7958])
    const { body, status } = await ask(...said({ ...token, 'Sluice-Cost': '7959' }))
    expect([status, body.title]).toEqual([429, 'Quota exceeded'])
    const { body: echo } = await ask(...said({ ...token, 'Sluice-Cost': '1' }))
    expect(Object.keys(echo.headers!).filter((name) => name.startsWith('sluice'))).toEqual([])
  },

  async 'key-function'({ ask, left }) {
    const cookie = await generateSignedCookie('user', 'ann', env.SESSION_SECRET)
    const ann = { headers: { cookie: cookie.split(';')[0]! } }
    const forged = { headers: { cookie: ann.headers.cookie.replace('ann', 'bob') } }
    expect((await ask('/', ann)).body.text).toBe('Hello ann.')
    expect(await left(['/', ann], ['/', { ...ann, ip: '192.0.2.1' }])).toEqual([58, 57])
    expect((await ask('/', forged)).body.text).toBe('Hello stranger.')
    expect(await left(['/', forged], ['/'], ['/', { ip: '192.0.2.2' }])).toEqual([58, 57, 59])
  },
}
