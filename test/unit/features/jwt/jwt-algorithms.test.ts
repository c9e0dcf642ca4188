import { createPublicKey } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createClaims } from '../../../../src/features/jwt/claims.ts'
import {
  clock,
  create,
  hs,
  lines,
  read,
  reset,
  SECRET,
  secretKey,
  set,
  startKeys,
  verified,
} from '../../../support/claims.ts'
import { sign, signer } from '../../../support/issuer.ts'

const keys = await startKeys()
const { issuer, first, second, kidless, claimsOf } = keys
afterAll(() => issuer.close())
beforeEach(() => {
  reset()
  keys.reset()
})

describe('algorithms of a secret', () => {
  const claims = create({ secret: 'JWT' })

  test.each([
    ['HS256', undefined, true],
    ['HS512', undefined, false],
    ['HS512', ['HS384', 'HS512'], true],
    ['HS256', 'HS512', false],
  ])(
    'For a token signed with %s while the configured algorithms are %j, verification returns %j.',
    async (alg, algorithms, verified) => {
      const set = create({ secret: 'JWT', ...(algorithms && { algorithms }) })
      const key = new Uint8Array(64).fill(7)
      const token = await sign({ sub: 'ann' }, { alg }, key)
      const env = { JWT: String.fromCharCode(...key) }
      expect(await read(set, token, env)).toEqual(verified ? { sub: 'ann' } : undefined)
    },
  )

  test.each<[string, unknown, string]>([
    ['is not set', undefined, 'jwt no-secret'],
    ['is empty', '', 'jwt no-secret'],
    ['is not a string', { toString: () => SECRET }, 'jwt no-secret'],
    ['has 31 bytes', 'x'.repeat(31), 'jwt short-secret'],
  ])(
    'If the variable of the secret %s, no token is verified and an event is logged.',
    async (_, value, line) => {
      const key = new TextEncoder().encode(typeof value === 'string' && value ? value : SECRET)
      const token = await hs({ sub: 'ann' }, {}, key)
      expect(await read(claims, token, { JWT: value })).toBe(undefined)
      expect(lines.map((text) => text.split(':')[0])).toEqual([line])
      expect(lines.join()).not.toMatch(/JWT|xxx/)
    },
  )

  test('A secret of 32 bytes is long enough, also with fewer characters.', async () => {
    for (const value of ['x'.repeat(32), 'é'.repeat(16)]) {
      const token = await hs({ sub: 'ann' }, {}, new TextEncoder().encode(value))
      expect(await read(claims, token, { JWT: value })).toEqual({ sub: 'ann' })
    }
  })
})

describe('algorithms of the keys of an issuer', () => {
  const ann = { sub: 'ann' }

  test.each(['RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES384', 'ES512', 'Ed25519'])(
    'A token signed with %s is read only where that algorithm is allowed.',
    async (alg) => {
      const one = await signer(alg, 'one')
      issuer.answer = set(one.jwk)
      expect(await read(claimsOf({ algorithms: alg }), await one.sign(ann))).toEqual(ann)
      const other = alg === 'ES384' ? 'ES256' : 'ES384'
      expect(await read(claimsOf({ algorithms: other }), await one.sign(ann))).toBe(undefined)
    },
  )

  test('A key without alg verifies every allowed algorithm that it fits, and no other.', async () => {
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
    ['without its modulus', { n: undefined }],
    ['with an invalid modulus', { n: 'a b' }],
    ['with another modulus', { n: 'AQAB' }],
  ])('A key %s verifies no token.', async (_, change) => {
    issuer.answer = set({ ...first.jwk, ...change }, second.jwk)
    const claims = claimsOf()
    expect(await read(claims, await first.sign(ann))).toBe(undefined)
    expect(await read(claims, await second.sign(ann))).toEqual(ann)
  })

  test('An RSA key of less than 2048 bits verifies no token, and the other keys of the set still do.', async () => {
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

  describe('a shared secret', () => {
    test('The public key of an issuer, in any form, does not verify HS256.', async () => {
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
      expect(issuer.fetches).toBe(0) // an algorithm that is not allowed causes no fetch
    })

    test('A symmetric key in the set of an issuer verifies no token, even if HS256 is allowed.', async () => {
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
          { deadlineMs: 10_000, log: () => {}, clock: () => clock.now },
        ),
      )
      for (const kid of ['oct', 'first', undefined]) {
        expect(await read(claims, await hs(ann, kid ? { kid } : {}))).toBe(undefined)
      }
      expect(await read(claims, await first.sign(ann))).toEqual(ann)
    })
  })
})
