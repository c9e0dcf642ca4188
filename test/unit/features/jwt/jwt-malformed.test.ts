import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { anyUrl } from '../../../support/any-text.ts'
import { create, hs, lines, NOW, read, reset, SECRET, startKeys } from '../../../support/claims.ts'
import { bearing, forge } from '../../../support/issuer.ts'
import { isLong } from '../../../support/long.ts'

const keys = await startKeys()
const { issuer, first, ec, claimsOf } = keys
afterAll(() => issuer.close())
beforeEach(() => {
  reset()
  keys.reset()
})

describe('malformed tokens for a secret', () => {
  const claims = create({ secret: 'JWT' })
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
    ['an alg that is not a string', forge({ alg: ['HS256'] }, payload, 'AAAA')],
    ['alg __proto__', forge({ alg: '__proto__' }, payload, 'AAAA')],
    ['no signature', forge({ alg: 'HS256' }, payload)],
    ['another signature', forge({ alg: 'HS256' }, payload, 'A'.repeat(43))],
    ['a header that is not JSON', signed(b64('HS256'), b64('{}'))],
    ['a header that is a list', signed(b64('[{"alg":"HS256"}]'), b64('{}'))],
    ['a header of 9,000 brackets', signed(b64('['.repeat(9000)), b64('{}'))],
    ['an unknown critical header', signed(b64('{"alg":"HS256","crit":["x"],"x":1}'), b64('{}'))],
    ['an unencoded payload', signed(b64('{"alg":"HS256","b64":false,"crit":["b64"]}'), 'abc')],
    ['a payload that is not JSON', signed(HEAD, b64('{"sub":'))],
    ['a payload that is a list', signed(HEAD, b64('["sub"]'))],
    ['a payload that is a string', signed(HEAD, b64('"sub"'))],
    ['a payload of null', signed(HEAD, b64('null'))],
    ['a payload that is not UTF-8', signed(HEAD, b64(Buffer.from([0x22, 0xff, 0x22])))],
    ['an empty payload', signed(HEAD, '')],
    ['a fourth part', `${signed(HEAD, b64('{}'))}.x`],
    ['a payload of 100 KB', signed(HEAD, b64(JSON.stringify({ sub: 'x'.repeat(100_000) })))],
    ['a signature of 100 KB', forge({ alg: 'HS256' }, payload, 'A'.repeat(100_000))],
  ])('A text that is not a signed token is not read: %s.', async (_, token) => {
    expect(await read(claims, token)).toBe(undefined)
    expect(lines).toEqual([])
  })

  test('Nested and large claims are read if the token has at most 16 KiB.', async () => {
    const nested = `${'{"a":'.repeat(1500)}1${'}'.repeat(1500)}`
    expect((await read(claims, signed(HEAD, b64(nested))))?.a).toBeTypeOf('object')
    const length = (token: string) => token.length
    const sized = (bytes: number) => signed(HEAD, b64(`{"sub":"${'x'.repeat(bytes)}"}`))
    expect(length(sized(12_216))).toBeLessThanOrEqual(16_384)
    expect((await read(claims, sized(12_216)))?.sub).toHaveLength(12_216)
    expect(length(sized(12_240))).toBeGreaterThan(16_384)
    expect(await read(claims, sized(12_240))).toBe(undefined)
  })

  test('A claim named __proto__ changes no prototype.', async () => {
    const token = signed(HEAD, b64('{"__proto__":{"sub":"admin"},"constructor":"x"}'))
    const found = (await claims(bearing(token, { JWT: SECRET })))!
    expect([found.sub, Object.getPrototypeOf(found)]).toEqual([undefined, null])
  })

  test('Random texts and changed tokens are not read.', async () => {
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
            jku: anyUrl(),
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
        // Two bits of the last character are unused, so another spelling of the same signature may be valid.
        if (found) {
          expect(token.slice(0, -1)).toBe(valid.slice(0, -1))
          expect(found.sub).toBe('ann')
        }
      }),
      { numRuns: isLong ? 2000 : 400 },
    )
    expect(lines).toEqual([])
  })
})

describe('malformed tokens for the keys of an issuer', () => {
  const ann = { sub: 'ann' }

  test('Random tokens verify nothing and never throw.', async () => {
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
          return '' // not representable as JSON
        }
      })
    await fc.assert(
      fc.asyncProperty(fc.oneof(changed, headed), async (token) => {
        fc.pre(token !== valid)
        const found = await read(claims, token)
        if (found) expect(token.slice(0, -1)).toBe(valid.slice(0, -1))
      }),
      { numRuns: isLong ? 1000 : 200 },
    )
  })
})
