import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isTrustedProxy } from '../../../src/credentials/trusted-token.ts'
import { seenWith } from '../../support/issuer.ts'

const one = 'the-first-token-0001'
const two = 'the-second-token-0002'
const ask = (said: string | undefined, configured: unknown) =>
  isTrustedProxy(
    seenWith(said === undefined ? {} : { 'Sluice-Token': said }, {
      env: { SLUICE_PROXY_TOKEN: configured },
    }),
  )

test.each([
  // said, configured, the decision API
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
])('%j, where %j are the tokens: %j', async (said, configured, expected) => {
  expect(await ask(said, configured)).toBe(expected)
})

test('nobody is the decision API but by one of the tokens, to the letter', async () => {
  const token = fc.stringMatching(/^[!-+.-~]{0,24}$/) // no comma
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 4 }), token, async (tokens, said) => {
      const usable = tokens.filter(({ length }) => length >= 16)
      expect(await ask(said, tokens.join(' '))).toBe(said !== '' && usable.includes(said))
      for (const known of usable) expect(await ask(known, tokens.join(','))).toBe(true)
    }),
  )
})

test('every token is compared, whichever it is, and a request is asked about once', async () => {
  let digests = 0
  const { digest } = crypto.subtle
  crypto.subtle.digest = (...args) => {
    digests += 1
    return digest.apply(crypto.subtle, args)
  }
  try {
    for (const said of [one, two, 'another-token-entirely']) {
      digests = 0
      const seen = seenWith(
        { 'Sluice-Token': said },
        { env: { SLUICE_PROXY_TOKEN: `${one} ${two}` } },
      )
      await Promise.all([isTrustedProxy(seen), isTrustedProxy(seen), isTrustedProxy({ ...seen })])
      expect(digests).toBe(3)
    }
  } finally {
    crypto.subtle.digest = digest
  }
})
