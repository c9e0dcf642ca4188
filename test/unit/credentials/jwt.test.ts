import { createHmac, createPublicKey } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JwtOptions } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { type Claims, createClaims } from '../../../src/credentials/jwt.ts'
import { UNREADABLE, UNVERIFIED, Unusable } from '../../../src/request/source.ts'
import type { RequestView } from '../../../src/request/view.ts'
import {
  bearing,
  forge,
  type Issuer,
  json,
  type Signer,
  seenWith,
  sign,
  signer,
  startIssuer,
} from '../../support/issuer.ts'

const SECRET = 'a secret of at least 32 bytes, or so it says'
const secretKey = new TextEncoder().encode(SECRET)
const NOW = 1_789_000_000

let now: number
let lines: string[]
beforeEach(() => {
  now = NOW * 1000
  lines = []
})

/** Claims that are `undefined` also where a token is there and does not verify. */
const verified = (claims: Claims) => async (seen: RequestView) => {
  const found = await claims(seen)
  return found instanceof Unusable ? undefined : found
}

const create = (jwt: JwtOptions, deadlineMs = 10_000) =>
  verified(
    createClaims(parseConfig({ policies: [], jwt }).jwt!, {
      deadlineMs,
      log: (event, code, message) => void lines.push(`${event} ${code}: ${message}`),
      clock: () => now,
    }),
  )

/** What a token claims, as a plain object. */
async function read(
  claims: ReturnType<typeof create>,
  token: string,
  env: Record<string, unknown> = { JWT: SECRET },
) {
  const found = await claims(bearing(token, env))
  return found && { ...found }
}

const hs = (claims: object, header: object = {}, key = secretKey) =>
  sign(claims, { alg: 'HS256', ...header }, key)

describe('with a secret', () => {
  const claims = create({ secret: 'JWT' })

  test('a token signed with it is read', async () => {
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
  ] as const)('%s of now and %j s: %j', async (name, at, verified) => {
    const value = typeof at === 'number' ? NOW + at : at
    const found = await read(claims, await hs({ sub: 'ann', [name]: value }))
    expect(found).toEqual(verified ? { sub: 'ann', [name]: value } : undefined)
  })

  test.each<[string, Partial<JwtOptions>, object, boolean]>([
    ['the issuer', { issuer: 'a' }, { iss: 'a' }, true],
    ['one of two issuers', { issuer: ['a', 'b'] }, { iss: 'b' }, true],
    ['another issuer', { issuer: 'a' }, { iss: 'b' }, false],
    ['an issuer in other letters', { issuer: 'a' }, { iss: 'A' }, false],
    ['issuers in a list', { issuer: 'a' }, { iss: ['a'] }, false],
    ['no issuer', { issuer: 'a' }, {}, false],
    ['the audience', { audience: 'a' }, { aud: 'a' }, true],
    ['an audience of several', { audience: ['a', 'b'] }, { aud: ['c', 'b'] }, true],
    ['another audience', { audience: 'a' }, { aud: ['b'] }, false],
    ['no audience', { audience: 'a' }, {}, false],
    ['an audience in an object', { audience: 'a' }, { aud: { 0: 'a', length: 1 } }, false],
    ['both', { issuer: 'i', audience: 'a' }, { iss: 'i', aud: 'a' }, true],
    ['only the one', { issuer: 'i', audience: 'a' }, { iss: 'i' }, false],
  ])('%s', async (_, rules, payload, verified) => {
    const found = await read(create({ secret: 'JWT', ...rules }), await hs(payload))
    expect(found).toEqual(verified ? payload : undefined)
  })

  test.each([
    ['HS256', undefined, true],
    ['HS512', undefined, false],
    ['HS512', ['HS384', 'HS512'], true],
    ['HS256', 'HS512', false],
  ])('%s where %j are allowed: %j', async (alg, algorithms, verified) => {
    const set = create({ secret: 'JWT', ...(algorithms && { algorithms }) })
    const key = new Uint8Array(64).fill(7)
    const token = await sign({ sub: 'ann' }, { alg }, key)
    const env = { JWT: String.fromCharCode(...key) }
    expect(await read(set, token, env)).toEqual(verified ? { sub: 'ann' } : undefined)
  })

  test.each<[string, unknown, string]>([
    ['no secret', undefined, 'jwt no-secret'],
    ['an empty one', '', 'jwt no-secret'],
    ['one that is no text', { toString: () => SECRET }, 'jwt no-secret'],
    ['one of 31 bytes', 'x'.repeat(31), 'jwt short-secret'],
  ])('%s verifies no token, and a line says so', async (_, value, line) => {
    const key = new TextEncoder().encode(typeof value === 'string' && value ? value : SECRET)
    const token = await hs({ sub: 'ann' }, {}, key)
    expect(await read(claims, token, { JWT: value })).toBe(undefined)
    expect(lines.map((text) => text.split(':')[0])).toEqual([line])
    expect(lines.join()).not.toMatch(/JWT|xxx/)
  })

  test('32 bytes are enough, whatever the number of characters', async () => {
    for (const value of ['x'.repeat(32), 'é'.repeat(16)]) {
      const token = await hs({ sub: 'ann' }, {}, new TextEncoder().encode(value))
      expect(await read(claims, token, { JWT: value })).toEqual({ sub: 'ann' })
    }
  })

  test.each(['__proto__', 'constructor', 'toString'])(
    'a variable called %s holds none',
    async (secret) => {
      const { jwt } = parseConfig({ policies: [], jwt: { secret: 'JWT' } })
      const deadline = { deadlineMs: 10_000, log: () => {}, clock: () => now }
      const claims = verified(createClaims({ ...jwt!, secret }, deadline)) // the parser takes no such name
      expect(await read(claims, await hs({ sub: 'ann' }), {})).toBe(undefined)
    },
  )

  test('a new value of the variable counts at once, and the old no longer', async () => {
    const token = await hs({ sub: 'ann' })
    expect(await read(claims, token)).toEqual({ sub: 'ann' })
    expect(await read(claims, token, { JWT: 'another secret of 32 bytes or more' })).toBe(undefined)
  })

  test('claims inherit nothing', async () => {
    const found = (await claims(bearing(await hs({ sub: 'ann' }), { JWT: SECRET })))!
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect(found[name]).toBe(undefined)
    }
  })

  test('a token is read from where the configuration says, the first that is there', async () => {
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

  test('policies that read claims of one request verify once', async () => {
    let verifications = 0
    const { verify } = crypto.subtle
    crypto.subtle.verify = (...args) => {
      verifications += 1
      return verify.apply(crypto.subtle, args)
    }
    try {
      const seen = bearing(await hs({ sub: 'ann' }), { JWT: SECRET })
      const found = await Promise.all([claims(seen), claims(seen), claims({ ...seen })])
      expect(found.map((one) => one?.sub)).toEqual(['ann', 'ann', 'ann'])
      await claims(seen)
      expect(verifications).toBe(1)
    } finally {
      crypto.subtle.verify = verify
    }
  })

  describe('no text but a signed one is a token:', () => {
    const payload = { sub: 'admin' }
    const signed = (head: string, body: string) =>
      `${head}.${body}.${createHmac('sha256', SECRET).update(`${head}.${body}`).digest('base64url')}`
    const b64 = (text: string | Buffer) => Buffer.from(text).toString('base64url')
    const HEAD = b64('{"alg":"HS256"}')

    test.each<[string, string]>([
      ['a word', 'token'],
      ['dots', '..'],
      ['many dots', '.'.repeat(10_000)],
      ['five parts (JWE)', 'a.b.c.d.e'],
      ['alg none', forge({ alg: 'none' }, payload)],
      ['alg None', forge({ alg: 'None' }, payload)],
      ['alg none, with a signature', forge({ alg: 'none' }, payload, 'AAAA')],
      ['no alg', forge({}, payload, 'AAAA')],
      ['an alg that is no text', forge({ alg: ['HS256'] }, payload, 'AAAA')],
      ['alg __proto__', forge({ alg: '__proto__' }, payload, 'AAAA')],
      ['no signature', forge({ alg: 'HS256' }, payload)],
      ['another signature', forge({ alg: 'HS256' }, payload, 'A'.repeat(43))],
      ['a header that is no JSON', signed(b64('HS256'), b64('{}'))],
      ['a header that is a list', signed(b64('[{"alg":"HS256"}]'), b64('{}'))],
      ['a header in brackets', signed(b64('['.repeat(9000)), b64('{}'))],
      ['an unknown critical header', signed(b64('{"alg":"HS256","crit":["x"],"x":1}'), b64('{}'))],
      ['an unencoded payload', signed(b64('{"alg":"HS256","b64":false,"crit":["b64"]}'), 'abc')],
      ['a payload that is no JSON', signed(HEAD, b64('{"sub":'))],
      ['a payload that is a list', signed(HEAD, b64('["sub"]'))],
      ['a payload that is a text', signed(HEAD, b64('"sub"'))],
      ['a payload of null', signed(HEAD, b64('null'))],
      ['a payload that is no UTF-8', signed(HEAD, b64(Buffer.from([0x22, 0xff, 0x22])))],
      ['an empty payload', signed(HEAD, '')],
      ['something behind', `${signed(HEAD, b64('{}'))}.x`],
      ['100 KB of it', signed(HEAD, b64(JSON.stringify({ sub: 'x'.repeat(100_000) })))],
      ['100 KB of signature', forge({ alg: 'HS256' }, payload, 'A'.repeat(100_000))],
    ])('%s', async (_, token) => {
      expect(await read(claims, token)).toBe(undefined)
      expect(lines).toEqual([])
    })

    test('nested and large claims are, up to 16 KiB in all', async () => {
      const nested = `${'{"a":'.repeat(1500)}1${'}'.repeat(1500)}`
      expect((await read(claims, signed(HEAD, b64(nested))))?.a).toBeTypeOf('object')
      const length = (token: string) => token.length
      const sized = (bytes: number) => signed(HEAD, b64(`{"sub":"${'x'.repeat(bytes)}"}`))
      expect(length(sized(12_216))).toBeLessThanOrEqual(16_384)
      expect((await read(claims, sized(12_216)))?.sub).toHaveLength(12_216)
      expect(length(sized(12_240))).toBeGreaterThan(16_384)
      expect(await read(claims, sized(12_240))).toBe(undefined)
    })

    test('and a claim called __proto__ changes nothing', async () => {
      const token = signed(HEAD, b64('{"__proto__":{"sub":"admin"},"constructor":"x"}'))
      const found = (await claims(bearing(token, { JWT: SECRET })))!
      expect([found.sub, Object.getPrototypeOf(found)]).toEqual([undefined, null])
    })

    test('random ones, and true ones with a character changed', async () => {
      const valid = await hs({ sub: 'ann', exp: NOW + 60 })
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~'
      const changed = fc
        .tuple(fc.nat(valid.length - 1), fc.constantFrom(...alphabet))
        .map(([at, letter]) => valid.slice(0, at) + letter + valid.slice(at + 1))
      const parts = fc
        .tuple(fc.jsonValue(), fc.jsonValue(), fc.base64String())
        .map(([header, payload, signature]) => forge(header, payload, signature))
      const headed = fc
        .tuple(
          fc.record(
            {
              alg: fc.constantFrom('none', 'HS256', 'HS384', 'RS256', 'ES256', 'EdDSA', ''),
              kid: fc.oneof(fc.string(), fc.constantFrom('../../dev/null', "' OR 1=1 --", '\0')),
              typ: fc.string(),
              jku: fc.webUrl(),
              crit: fc.array(fc.string()),
            },
            { requiredKeys: [] },
          ),
          fc.constantFrom('', 'AA', 'A'.repeat(43)),
        )
        .map(([header, signature]) => forge(header, payload, signature))
      const letters = fc.stringMatching(/^[\w.-]{1,300}$/)
      await fc.assert(
        fc.asyncProperty(fc.oneof(changed, parts, headed, letters), async (token) => {
          fc.pre(token !== valid)
          const found = await read(claims, token)
          // Of the last character two bits say nothing: another spelling of the same signature may do.
          if (found) {
            expect(token.slice(0, -1)).toBe(valid.slice(0, -1))
            expect(found.sub).toBe('ann')
          }
        }),
        { numRuns: 2000 },
      )
      expect(lines).toEqual([])
    })
  })
})

describe('what a request without verified claims has', () => {
  const claims = (from: JwtOptions['from'], env: Record<string, unknown>) => {
    const read = createClaims(parseConfig({ policies: [], jwt: { secret: 'JWT', from } }).jwt!, {
      deadlineMs: 10_000,
      log: () => {},
      clock: () => now,
    })
    return (headers: Record<string, string>, query = '') => read(seenWith(headers, { env, query }))
  }
  const env = { JWT: SECRET }

  test('nothing: no token, or a bearer token that is no JWT', async () => {
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({})).toBe(undefined)
    expect(await read({ Authorization: 'Basic YTpi' })).toBe(undefined)
    expect(await read({ Authorization: 'Bearer an-api-key' })).toBe(undefined)
    expect(await read({ Authorization: 'Bearer a.key' })).toBe(undefined)
  })

  test('an unverified token: one that is expired, signed by others, or too long', async () => {
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

  test('an unverified token, where the variable of the secret is not set', async () => {
    const headers = { Authorization: `Bearer ${await hs({ sub: 'ann' })}` }
    expect(await claims('bearer', {})(headers)).toBe(UNVERIFIED)
  })

  test('an unverified token: any text at a place that is for tokens alone', async () => {
    expect(await claims('cookie:session', env)({ Cookie: 'session=x' })).toBe(UNVERIFIED)
    expect(await claims('header:x-token', env)({ 'X-Token': 'x' })).toBe(UNVERIFIED)
  })

  test('an unverified token: a bearer token of another kind before a token at a later place', async () => {
    const token = await hs({ sub: 'ann' })
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({ Authorization: 'Bearer x' }, `?token=${token}`)).toBe(UNVERIFIED)
  })

  test('an unreadable token: two that differ', async () => {
    const [ann, bob] = [await hs({ sub: 'ann' }), await hs({ sub: 'bob' })]
    const read = claims(['bearer', 'query:token'], env)
    expect(await read({ Authorization: `Bearer ${ann}, Bearer ${bob}` })).toBe(UNREADABLE)
    expect(await read({}, `?token=${ann}&token=${bob}`)).toBe(UNREADABLE)
  })
})

describe('with the keys of an issuer', () => {
  let issuer: Issuer
  let first: Signer
  let second: Signer
  let ec: Signer
  let ed: Signer
  let kidless: Signer
  let unkept: Signer
  const set = (...keys: unknown[]) => json({ keys })

  beforeAll(async () => {
    issuer = await startIssuer()
    ;[first, second, ec, ed, kidless, unkept] = await Promise.all([
      signer('RS256', 'first'),
      signer('RS256', 'second'),
      signer('ES256', 'ec'),
      signer('EdDSA', 'ed'),
      signer('RS256', undefined),
      signer('RS256', 'first'),
    ])
  })
  afterAll(() => issuer.close())
  beforeEach(() => {
    issuer.fetches = 0
    issuer.answer = set(first.jwk, second.jwk, ec.jwk, ed.jwk)
  })
  const claimsOf = (options: Partial<JwtOptions> = {}) => create({ jwks: issuer.url, ...options })
  const ann = { sub: 'ann' }

  test('tokens signed by any of them are read, and the keys fetched and imported once', async () => {
    let imports = 0
    const { importKey } = crypto.subtle
    crypto.subtle.importKey = ((...args: unknown[]) => {
      imports += 1
      return importKey.apply(crypto.subtle, args as never)
    }) as never
    try {
      const claims = claimsOf()
      const tokens = await Promise.all([first, second, ec, ed].map((one) => one.sign(ann)))
      imports = 0
      const found = await Promise.all(
        Array.from({ length: 40 }, (_, index) => read(claims, tokens[index % 4]!)),
      )
      expect(found).toEqual(Array(40).fill(ann))
      expect([issuer.fetches, imports, lines]).toEqual([1, 4, []])
    } finally {
      crypto.subtle.importKey = importKey
    }
  })

  test.each(['RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES384', 'ES512', 'Ed25519'])(
    '%s, where it is allowed',
    async (alg) => {
      const one = await signer(alg, 'one')
      issuer.answer = set(one.jwk)
      expect(await read(claimsOf({ algorithms: alg }), await one.sign(ann))).toEqual(ann)
      const other = alg === 'ES384' ? 'ES256' : 'ES384'
      expect(await read(claimsOf({ algorithms: other }), await one.sign(ann))).toBe(undefined)
    },
  )

  test('a key without alg is for every algorithm that it fits, and no other', async () => {
    const one = await signer('PS256', 'one', { alg: undefined, use: undefined })
    issuer.answer = set(one.jwk)
    expect(await read(claimsOf(), await one.sign(ann))).toEqual(ann)
    expect(await read(claimsOf({ algorithms: 'RS256' }), await one.sign(ann))).toBe(undefined)
  })

  test.each<[string, object]>([
    ['for encryption', { use: 'enc' }],
    ['for another operation', { key_ops: ['encrypt'] }],
    ['of another algorithm', { alg: 'RS512' }],
    ['of another type', { kty: 'EC' }],
    ['without its number', { n: undefined }],
    ['with a number that is none', { n: 'a b' }],
    ['with another number', { n: 'AQAB' }],
  ])('a key %s is no key', async (_, change) => {
    issuer.answer = set({ ...first.jwk, ...change }, second.jwk)
    const claims = claimsOf()
    expect(await read(claims, await first.sign(ann))).toBe(undefined)
    expect(await read(claims, await second.sign(ann))).toEqual(ann)
  })

  test('what is no key at all is passed over', async () => {
    issuer.answer = set(null, 7, 'key', [], {}, { kty: 'new' }, first.jwk)
    expect(await read(claimsOf(), await first.sign(ann))).toEqual(ann)
  })

  test.each<[string, unknown]>([
    ['no keys', []],
    ['keys in an object', { 0: 'x', length: 1 }],
    ['keys that fit no algorithm', [{ kty: 'oct', k: 'AAAA' }]],
  ])('a document with %s verifies nothing, and a line says so', async (_, keys) => {
    issuer.answer = json({ keys })
    expect(await read(claimsOf(), await first.sign(ann))).toBe(undefined)
    expect(lines).toEqual([
      "jwks no-keys: the issuer's keys could not be fetched: no usable key was in what came",
    ])
  })

  test('a private key that an issuer gives away is no key', async () => {
    issuer.answer = set(first.privateJwk)
    expect(await read(claimsOf(), await first.sign(ann))).toBe(undefined)
  })

  test('a key of less than 2048 bits is none, and spoils no other', async () => {
    const pair = (await crypto.subtle.generateKey(
      {
        name: 'RSASSA-PKCS1-v1_5',
        modulusLength: 1024,
        publicExponent: new Uint8Array([1, 0, 1]),
        hash: 'SHA-256',
      },
      true,
      ['sign', 'verify'],
    )) as CryptoKeyPair
    const jwk = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const head = Buffer.from('{"alg":"RS256"}').toString('base64url')
    const body = Buffer.from('{"sub":"ann"}').toString('base64url')
    const signature = await crypto.subtle.sign(
      'RSASSA-PKCS1-v1_5',
      pair.privateKey,
      Buffer.from(`${head}.${body}`),
    )
    issuer.answer = set({ kty: 'RSA', n: jwk.n, e: jwk.e }, kidless.jwk)
    const claims = claimsOf()
    const token = `${head}.${body}.${Buffer.from(signature).toString('base64url')}`
    expect(await read(claims, token)).toBe(undefined)
    expect(await read(claims, await kidless.sign(ann))).toEqual(ann)
  })

  describe('a shared secret is no way in:', () => {
    test('the public key, in whatever form, does not sign HS256', async () => {
      const claims = claimsOf()
      const pem = createPublicKey({ key: first.jwk as never, format: 'jwk' })
      const forms = [
        pem.export({ type: 'spki', format: 'pem' }),
        pem.export({ type: 'spki', format: 'der' }),
        pem.export({ type: 'pkcs1', format: 'pem' }),
        JSON.stringify(first.jwk),
        first.jwk.n!,
        Buffer.from(first.jwk.n!, 'base64url'),
      ]
      for (const form of forms) {
        for (const kid of ['first', undefined]) {
          const token = await hs(ann, kid ? { kid } : {}, new Uint8Array(Buffer.from(form)))
          expect(await read(claims, token)).toBe(undefined)
        }
      }
      expect(issuer.fetches).toBe(0) // what may not be is not worth a fetch
    })

    test('nor does one that the issuer gives away, even were HS256 allowed', async () => {
      const oct = { kty: 'oct', k: Buffer.from(secretKey).toString('base64url'), kid: 'oct' }
      issuer.answer = set(oct, { ...oct, alg: 'HS256' }, { ...oct, alg: 'RS256' }, first.jwk)
      const options = {
        jwks: issuer.url,
        secret: undefined,
        issuer: undefined,
        audience: undefined,
      }
      const claims = verified(
        createClaims(
          { ...options, algorithms: ['HS256', 'RS256'], from: [{ source: 'bearer', name: '' }] },
          { deadlineMs: 10_000, log: () => {}, clock: () => now },
        ),
      )
      for (const kid of ['oct', 'first', undefined]) {
        expect(await read(claims, await hs(ann, kid ? { kid } : {}))).toBe(undefined)
      }
      expect(await read(claims, await first.sign(ann))).toEqual(ann)
    })

    test('nor is one of two ways allowed by the configuration', () => {
      expect(() => create({ jwks: issuer.url, algorithms: 'HS256' })).toThrow('jwt.algorithms:')
      expect(() => create({ secret: 'JWT', algorithms: ['HS256', 'RS256'] })).toThrow(
        'jwt.algorithms[1]',
      )
      expect(() => create({ secret: 'JWT', jwks: issuer.url })).toThrow('jwt.jwks')
      expect(() => create({})).toThrow('jwt.secret')
      expect(() => create({ secret: 'JWT', algorithms: 'none' })).toThrow('jwt.algorithms:')
    })
  })

  test('keys that a token brings along or points at are not looked at', async () => {
    const evil = await signer('RS256', 'evil')
    const elsewhere = await startIssuer(set({ ...evil.jwk, kid: 'first' }))
    const claims = claimsOf()
    for (const header of [
      { jku: elsewhere.url },
      { jwk: evil.jwk },
      { x5u: elsewhere.url },
      { x5c: ['AAAA'] },
      { jku: elsewhere.url, jwk: evil.jwk, kid: 'first' },
      { kid: elsewhere.url },
    ]) {
      expect(await read(claims, await evil.sign(ann, header))).toBe(undefined)
    }
    // Nor do they harm a token that is signed by the issuer.
    expect(await read(claims, await first.sign(ann, { jku: elsewhere.url }))).toEqual(ann)
    expect(elsewhere.fetches).toBe(0)
    await elsewhere.close()
  })

  test.each<[string, object]>([
    ['of another key', { kid: 'second' }],
    ['of a key of another type', { kid: 'ec' }],
    ['of no key', { kid: 'third' }],
    ['that is empty', { kid: '' }],
    ['that is a path', { kid: '../../../dev/null' }],
    ['that is __proto__', { kid: '__proto__' }],
    ['that is a number', { kid: 0 }],
    ['that is null', { kid: null }],
    ['that is a list', { kid: ['first'] }],
    ['that is 8 KB long', { kid: 'x'.repeat(8000) }],
  ])('a kid %s verifies nothing', async (_, header) => {
    expect(await read(claimsOf(), await first.sign(ann, header))).toBe(undefined)
  })

  test('a token without kid is tried with every key of its algorithm, eight at most', async () => {
    const token = await first.sign(ann, { kid: undefined })
    expect(await read(claimsOf(), token)).toEqual(ann)
    issuer.answer = set(...Array(7).fill(second.jwk), first.jwk)
    expect(await read(claimsOf(), token)).toEqual(ann)
    issuer.answer = set(...Array(8).fill(second.jwk), first.jwk)
    expect(await read(claimsOf(), token)).toBe(undefined)
    issuer.answer = set(kidless.jwk)
    expect(await read(claimsOf(), await kidless.sign(ann))).toEqual(ann)
    expect(await read(claimsOf(), await kidless.sign(ann, { kid: 'any' }))).toBe(undefined)
  })

  test('expired tokens, and those for others, are none', async () => {
    const claims = claimsOf({ issuer: 'i', audience: 'a' })
    const fine = { iss: 'i', aud: 'a', exp: NOW + 1 }
    expect(await read(claims, await first.sign(fine))).toEqual(fine)
    for (const change of [{ iss: 'x' }, { aud: 'x' }, { exp: NOW - 6 }, { nbf: NOW + 6 }]) {
      expect(await read(claims, await first.sign({ ...fine, ...change }))).toBe(undefined)
    }
    now += 60 * 60_000
    expect(issuer.fetches).toBe(1)
  })

  describe('when the issuer changes its keys', () => {
    const background: Promise<unknown>[] = []
    const settled = async () => {
      while (background.length > 0) await background.shift()
    }
    const ask = async (claims: ReturnType<typeof create>, token: string) => {
      const seen = bearing(token)
      const found = await claims(seen)
      background.push(...seen.background)
      return found && { ...found }
    }

    test('a token signed by a new one counts as missing once, and is read when the keys have come', async () => {
      issuer.answer = set(first.jwk)
      const claims = claimsOf()
      const token = await second.sign(ann)
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      issuer.answer = set(first.jwk, second.jwk)
      now += 30_000
      const before = performance.now()
      expect(await ask(claims, token)).toBe(undefined)
      expect(performance.now() - before).toBeLessThan(500)
      await settled()
      expect(await ask(claims, token)).toEqual(ann)
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      expect(issuer.fetches).toBe(2)
    })

    test('a key that the issuer withdraws is gone with the next fetch', async () => {
      const claims = claimsOf()
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      issuer.answer = set(second.jwk)
      now += 10 * 60_000
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      await settled()
      expect(await ask(claims, await first.sign(ann))).toBe(undefined)
    })

    test('also where the new key has the name of the old, or none has a name', async () => {
      const claims = claimsOf()
      await ask(claims, await first.sign(ann))
      issuer.answer = set(unkept.jwk)
      now += 30_000
      expect(await ask(claims, await unkept.sign(ann))).toBe(undefined)
      await settled()
      expect(await ask(claims, await unkept.sign(ann))).toEqual(ann)
    })

    test('a flood of tokens with other kids costs a fetch every 30 s', async () => {
      const claims = claimsOf()
      await ask(claims, await first.sign(ann))
      for (let second = 1; second <= 90; second++) {
        now += 1000
        const token = forge({ alg: 'RS256', kid: `kid-${second}` }, ann, 'AAAA')
        expect(await ask(claims, token)).toBe(undefined)
        await settled()
      }
      expect(issuer.fetches).toBe(4)
      expect(lines).toEqual([])
    })

    test('a flood of tokens that expired, or are for others, costs none', async () => {
      const claims = claimsOf({ audience: 'a' })
      await ask(claims, await first.sign({ aud: 'a' }))
      for (const change of [{ exp: NOW - 60 }, { aud: 'b' }]) {
        now += 30_000
        expect(await ask(claims, await first.sign({ aud: 'a', ...change }))).toBe(undefined)
      }
      await settled()
      expect(issuer.fetches).toBe(1)
    })

    test('no request without a token that may be one makes a fetch', async () => {
      const claims = claimsOf()
      for (const token of [
        'x',
        'a.b.c',
        forge({ alg: 'none' }, ann),
        forge({ alg: 'HS256' }, ann),
      ]) {
        expect(await ask(claims, token)).toBe(undefined)
      }
      expect(await claims(seenWith())).toBe(undefined)
      await settled()
      expect(issuer.fetches).toBe(0)
    })
  })

  test('random tokens verify nothing, and never throw', async () => {
    const claims = claimsOf()
    await read(claims, await first.sign(ann))
    const valid = await ec.sign({ ...ann, exp: NOW + 60 })
    const changed = fc
      .tuple(fc.nat(valid.length - 1), fc.constantFrom(...'AZaz09-_.'))
      .map(([at, letter]) => valid.slice(0, at) + letter + valid.slice(at + 1))
    const headed = fc
      .tuple(
        fc.record({
          alg: fc.constantFrom('RS256', 'PS256', 'ES256', 'EdDSA', 'HS256', 'none'),
          kid: fc.oneof(fc.constantFrom('first', 'ec', 'ed', 'oct'), fc.anything()),
        }),
        fc.jsonValue(),
        fc.oneof(fc.constantFrom('', 'AAAA', valid.split('.')[2]!), fc.base64String()),
      )
      .map(([header, payload, signature]) => {
        try {
          return forge(header, payload, signature)
        } catch {
          return '' // what JSON has no text for
        }
      })
    await fc.assert(
      fc.asyncProperty(fc.oneof(changed, headed), async (token) => {
        fc.pre(token !== valid)
        const found = await read(claims, token)
        if (found) expect(token.slice(0, -1)).toBe(valid.slice(0, -1))
      }),
      { numRuns: 1000 },
    )
  })
})
