import { beforeEach, describe, expect, test } from 'vitest'
import { UNREADABLE } from '../../../../src/core/base/part.ts'
import { UNVERIFIED } from '../../../../src/core/request/source.ts'
import { createClaims } from '../../../../src/features/jwt/claims.ts'
import type { JwtOptions } from '../../../../src/features/jwt/index.ts'
import { parseOptions } from '../../../../src/features/jwt/options.ts'
import {
  clock,
  create,
  hs,
  lines,
  NOW,
  read,
  reset,
  SECRET,
  verified,
} from '../../../support/claims.ts'
import { bearing, seenWith } from '../../../support/issuer.ts'

beforeEach(reset)

describe('claims of a token signed with a secret', () => {
  const claims = create({ secret: 'JWT' })

  test('A token that is signed with the secret is read.', async () => {
    expect(await read(claims, await hs({ sub: 'ann', n: 7, deep: { a: [1] } }))).toEqual({
      sub: 'ann',
      n: 7,
      deep: { a: [1] },
    })
    expect(lines).toEqual([])
  })

  test.each([
    ['exp', 5, true],
    ['exp', 0, true],
    ['exp', -4, true],
    ['exp', -5, false],
    ['exp', -6, false],
    ['exp', '5', false],
    ['exp', null, false],
    ['nbf', -5, true],
    ['nbf', 0, true],
    ['nbf', 5, true],
    ['nbf', 6, false],
    ['nbf', [], false],
    ['iat', 1000, true],
  ] as const)(
    'For a token whose claim %s is %j s after the current time, verification returns %j.',
    async (name, at, verified) => {
      const value = typeof at === 'number' ? NOW + at : at
      const found = await read(claims, await hs({ sub: 'ann', [name]: value }))
      expect(found).toEqual(verified ? { sub: 'ann', [name]: value } : undefined)
    },
  )

  test.each<[string, Partial<JwtOptions>, object, boolean]>([
    ['the issuer', { issuer: 'a' }, { iss: 'a' }, true],
    ['one of two issuers', { issuer: ['a', 'b'] }, { iss: 'b' }, true],
    ['another issuer', { issuer: 'a' }, { iss: 'b' }, false],
    ['an issuer in other letters', { issuer: 'a' }, { iss: 'A' }, false],
    ['a list of issuers', { issuer: 'a' }, { iss: ['a'] }, false],
    ['no issuer', { issuer: 'a' }, {}, false],
    ['the audience', { audience: 'a' }, { aud: 'a' }, true],
    ['one of several audiences', { audience: ['a', 'b'] }, { aud: ['c', 'b'] }, true],
    ['another audience', { audience: 'a' }, { aud: ['b'] }, false],
    ['no audience', { audience: 'a' }, {}, false],
    ['an audience in an object', { audience: 'a' }, { aud: { 0: 'a', length: 1 } }, false],
    ['issuer and audience', { issuer: 'i', audience: 'a' }, { iss: 'i', aud: 'a' }, true],
    ['issuer without audience', { issuer: 'i', audience: 'a' }, { iss: 'i' }, false],
  ])(
    'Issuer and audience of the token are compared with the configuration: %s.',
    async (_, rules, payload, verified) => {
      const found = await read(create({ secret: 'JWT', ...rules }), await hs(payload))
      expect(found).toEqual(verified ? payload : undefined)
    },
  )

  test.each(['__proto__', 'constructor', 'toString'])(
    'A variable named %s contains no secret.',
    async (secret) => {
      const settings = parseOptions({ secret: 'JWT' })
      const deadline = { deadlineMs: 10_000, log: () => {}, clock: () => clock.now }
      const claims = verified(createClaims({ ...settings, secret }, deadline)) // the parser refuses such a name
      expect(await read(claims, await hs({ sub: 'ann' }), {})).toBe(undefined)
    },
  )

  test('A new value of the secret takes effect at once, and the old one no longer verifies.', async () => {
    const token = await hs({ sub: 'ann' })
    expect(await read(claims, token)).toEqual({ sub: 'ann' })
    expect(await read(claims, token, { JWT: 'another secret of 32 bytes or more' })).toBe(undefined)
  })

  test('Claims inherit no properties.', async () => {
    const found = (await claims(bearing(await hs({ sub: 'ann' }), { JWT: SECRET })))!
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(found[name]).toBe(undefined)
    }
  })

  test('The token is read from the first of the configured sources that is present.', async () => {
    const set = create({ secret: 'JWT', from: ['cookie:session', 'query:token'] })
    const [ann, bob] = [await hs({ sub: 'ann' }), await hs({ sub: 'bob' })]
    const at = async (headers: Record<string, string>, query: string) =>
      (await set(seenWith(headers, { env: { JWT: SECRET }, query })))?.sub
    expect(await at({ Cookie: `session=${ann}` }, `?token=${bob}`)).toBe('ann')
    expect(await at({}, `?token=${bob}`)).toBe('bob')
    expect(await at({ Cookie: `session=${ann}; session=${bob}` }, `?token=${bob}`)).toBe(undefined)
    expect(await at({ Cookie: 'session=nonsense' }, `?token=${bob}`)).toBe(undefined)
    expect(await at({ Authorization: `Bearer ${ann}` }, '')).toBe(undefined)
  })

  test('Several readers of the claims of one request cause one verification.', async () => {
    let verifications = 0
    const { verify } = crypto.subtle
    crypto.subtle.verify = (...args) => {
      verifications += 1
      return verify.apply(crypto.subtle, args)
    }
    try {
      const seen = bearing(await hs({ sub: 'ann' }), { JWT: SECRET })
      const found = await Promise.all([claims(seen), claims(seen), claims(seen.with({}))])
      expect(found.map((one) => one?.sub)).toEqual(['ann', 'ann', 'ann'])
      await claims(seen)
      expect(verifications).toBe(1)
    } finally {
      crypto.subtle.verify = verify
    }
  })
})

describe('a request without verified claims', () => {
  const claims = (from: JwtOptions['from'], env: Record<string, unknown>) => {
    const read = createClaims(parseOptions({ secret: 'JWT', from }), {
      deadlineMs: 10_000,
      log: () => {},
      clock: () => clock.now,
    })
    return (headers: Record<string, string>, query = '') => read(seenWith(headers, { env, query }))
  }
  const env = { JWT: SECRET }

  test('A request without a token, or with a bearer token that is not a JWT, has no claims.', async () => {
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({})).toBe(undefined)
    expect(await read({ Authorization: 'Basic YTpi' })).toBe(undefined)
    expect(await read({ Authorization: 'Bearer an-api-key' })).toBe(undefined)
    expect(await read({ Authorization: 'Bearer a.key' })).toBe(undefined)
  })

  test('A token that is expired, signed with another key or too long is unverified.', async () => {
    const read = claims('bearer', env)
    const others = new TextEncoder().encode('another secret of 32 bytes or more')
    const tokens = [
      await hs({ exp: NOW - 60 }),
      await hs({ sub: 'ann' }, {}, others),
      await hs({ sub: 'a'.repeat(20_000) }),
      'a.b.c',
    ]
    for (const token of tokens) {
      expect(await read({ Authorization: `Bearer ${token}` })).toBe(UNVERIFIED)
    }
  })

  test('A token is unverified if the variable of the secret is not set.', async () => {
    const headers = { Authorization: `Bearer ${await hs({ sub: 'ann' })}` }
    expect(await claims('bearer', {})(headers)).toBe(UNVERIFIED)
  })

  test('Any text in a source that contains only tokens is an unverified token.', async () => {
    expect(await claims('cookie:session', env)({ Cookie: 'session=x' })).toBe(UNVERIFIED)
    expect(await claims('header:x-token', env)({ 'X-Token': 'x' })).toBe(UNVERIFIED)
  })

  test('A bearer token of another kind is an unverified token if a later source has a token.', async () => {
    const token = await hs({ sub: 'ann' })
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({ Authorization: 'Bearer x' }, `?token=${token}`)).toBe(UNVERIFIED)
  })

  test('Two different tokens in one source are an unreadable token.', async () => {
    const [ann, bob] = [await hs({ sub: 'ann' }), await hs({ sub: 'bob' })]
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({ Authorization: `Bearer ${ann}, Bearer ${bob}` })).toBe(UNREADABLE)
    expect(await read({}, `?token=${ann}&token=${bob}`)).toBe(UNREADABLE)
  })
})
