import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isTrustedProxy } from '../../../../src/core/request/trusted-token.ts'
import { seenWith } from '../../../support/issuer.ts'

const one = 'the-first-token-0001'
const two = 'the-second-token-0002'
const check = (token: string | undefined, configured: unknown) =>
  isTrustedProxy(
    seenWith(token === undefined ? {} : { 'Sluice-Token': token }, {
      env: { SLUICE_PROXY_TOKEN: configured },
    }),
  )

test.each([
  // token, configured tokens, result
  [one, one, true],
  [one, `${one} ${two}`, true],
  [two, `${one},${two}`, true],
  [two, ` ${one}\n,\t ${two} `, true],
  [one, `${one}${two}`, false],
  [`${one} ${two}`, `${one} ${two}`, false],
  [`${one}, ${one}`, one, false],
  [one.toUpperCase(), one, false],
  [one.slice(0, -1), one, false],
  [`${one}x`, one, false],
  ['exactly-16-chars', 'exactly-16-chars', true],
  ['only-15-chars--', 'only-15-chars--', false],
  ['only-15-chars--', `only-15-chars-- ${one}`, false],
  ['x', 'x', false],
  ['', '', false],
  ['undefined', undefined, false],
  [one, undefined, false],
  [one, '', false],
  [one, ' , ', false],
  [one, 7, false],
  [one, [one], false],
  [undefined, one, false],
  [undefined, undefined, false],
])(
  'For the token %j and the configured tokens %j, isTrustedProxy returns %j.',
  async (token, configured, expected) => {
    expect(await check(token, configured)).toBe(expected)
  },
)

test('A request comes from a trusted proxy if and only if it has exactly one of the configured tokens.', async () => {
  const tokenText = fc.stringMatching(/^[!-+.-~]{0,24}$/) // no comma
  await fc.assert(
    fc.asyncProperty(fc.array(tokenText, { maxLength: 4 }), tokenText, async (tokens, token) => {
      const usable = tokens.filter(({ length }) => length >= 16)
      expect(await check(token, tokens.join(' '))).toBe(token !== '' && usable.includes(token))
      for (const known of usable) expect(await check(known, tokens.join(','))).toBe(true)
    }),
  )
})

test('Each configured token is compared with any token of a request, once per request.', async () => {
  let digests = 0
  const { digest } = crypto.subtle
  crypto.subtle.digest = (...args) => {
    digests += 1
    return digest.apply(crypto.subtle, args)
  }
  try {
    for (const token of [one, two, 'another-token-entirely']) {
      digests = 0
      const seen = seenWith(
        { 'Sluice-Token': token },
        { env: { SLUICE_PROXY_TOKEN: `${one} ${two}` } },
      )
      await Promise.all([isTrustedProxy(seen), isTrustedProxy(seen), isTrustedProxy(seen.with({}))])
      expect(digests).toBe(3)
    }
  } finally {
    crypto.subtle.digest = digest
  }
})
