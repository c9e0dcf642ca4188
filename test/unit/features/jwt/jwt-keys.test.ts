import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import {
  clock,
  type create,
  lines,
  NOW,
  read,
  reset,
  set,
  startKeys,
} from '../../../support/claims.ts'
import { bearing, forge, json, seenWith, signer, startIssuer } from '../../../support/issuer.ts'

const keys = await startKeys()
const { issuer, first, second, ec, ed, kidless, unkept, claimsOf } = keys
afterAll(() => issuer.close())
beforeEach(() => {
  reset()
  keys.reset()
})

describe('the key set of an issuer', () => {
  const ann = { sub: 'ann' }

  test('Tokens signed by any key of the set are read, and the keys are fetched and imported once.', async () => {
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

  test('Entries of the key set that are not keys are ignored.', async () => {
    issuer.answer = set(null, 7, 'key', [], {}, { kty: 'new' }, first.jwk)
    expect(await read(claimsOf(), await first.sign(ann))).toEqual(ann)
  })

  test.each<[string, unknown]>([
    ['no keys', []],
    ['keys in an object', { 0: 'x', length: 1 }],
    ['keys that fit no algorithm', [{ kty: 'oct', k: 'AAAA' }]],
  ])('A key document with %s verifies no token, and an event is logged.', async (_, keys) => {
    issuer.answer = json({ keys })
    expect(await read(claimsOf(), await first.sign(ann))).toBe(undefined)
    expect(lines).toEqual([
      "jwks no-keys: the issuer's keys could not be fetched: the response has no usable key",
    ])
  })

  test('A private key in the set verifies no token.', async () => {
    issuer.answer = set(first.privateJwk)
    expect(await read(claimsOf(), await first.sign(ann))).toBe(undefined)
  })

  test('Keys that a token contains or refers to are ignored.', async () => {
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
    // A token that is signed by the issuer is still verified.
    expect(await read(claims, await first.sign(ann, { jku: elsewhere.url }))).toEqual(ann)
    expect(elsewhere.fetches).toBe(0)
    await elsewhere.close()
  })

  test.each<[string, object]>([
    ['of another key', { kid: 'second' }],
    ['of a key of another type', { kid: 'ec' }],
    ['of an unknown key', { kid: 'third' }],
    ['that is empty', { kid: '' }],
    ['that is a path', { kid: '../../../tools/null' }],
    ['that is __proto__', { kid: '__proto__' }],
    ['that is a number', { kid: 0 }],
    ['that is null', { kid: null }],
    ['that is a list', { kid: ['first'] }],
    ['that is 8 KB long', { kid: 'x'.repeat(8000) }],
  ])('A token with a kid %s is not verified.', async (_, header) => {
    expect(await read(claimsOf(), await first.sign(ann, header))).toBe(undefined)
  })

  test('A token without a kid is tried with at most eight keys of its algorithm.', async () => {
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

    test('A token signed by a new key is unverified until the new keys are fetched.', async () => {
      issuer.answer = set(first.jwk)
      const claims = claimsOf()
      const token = await second.sign(ann)
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      const asked = Promise.withResolvers<void>()
      issuer.answer = async (response, request) => {
        await asked.promise
        set(first.jwk, second.jwk)(response, request)
      }
      clock.now += 30_000
      expect(await ask(claims, token)).toBe(undefined)
      asked.resolve()
      await settled()
      expect(await ask(claims, token)).toEqual(ann)
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      expect(issuer.fetches).toBe(2)
    })

    test('A withdrawn key stops verifying after the next fetch.', async () => {
      const claims = claimsOf()
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      issuer.answer = set(second.jwk)
      clock.now += 10 * 60_000
      expect(await ask(claims, await first.sign(ann))).toEqual(ann)
      await settled()
      expect(await ask(claims, await first.sign(ann))).toBe(undefined)
    })

    test('A new key with the kid of an old key is fetched too.', async () => {
      const claims = claimsOf()
      await ask(claims, await first.sign(ann))
      issuer.answer = set(unkept.jwk)
      clock.now += 30_000
      expect(await ask(claims, await unkept.sign(ann))).toBe(undefined)
      await settled()
      expect(await ask(claims, await unkept.sign(ann))).toEqual(ann)
    })

    test('A flood of tokens with unknown kids causes one fetch every 30 s.', async () => {
      const claims = claimsOf()
      await ask(claims, await first.sign(ann))
      for (let second = 1; second <= 90; second++) {
        clock.now += 1000
        const token = forge({ alg: 'RS256', kid: `kid-${second}` }, ann, 'AAAA')
        expect(await ask(claims, token)).toBe(undefined)
        await settled()
      }
      expect(issuer.fetches).toBe(4)
      expect(lines).toEqual([])
    })

    test('A flood of tokens that are expired or for another audience causes no fetch.', async () => {
      const claims = claimsOf({ audience: 'a' })
      await ask(claims, await first.sign({ aud: 'a' }))
      for (const change of [{ exp: NOW - 60 }, { aud: 'b' }]) {
        clock.now += 30_000
        expect(await ask(claims, await first.sign({ aud: 'a', ...change }))).toBe(undefined)
      }
      await settled()
      expect(issuer.fetches).toBe(1)
    })

    test('A request without a plausible token causes no fetch.', async () => {
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
})
