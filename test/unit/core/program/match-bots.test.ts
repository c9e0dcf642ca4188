/** Conditions and keys on what Cloudflare reports about a client, and on the query. */
import { describe, expect, test } from 'vitest'
import type { MatchOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { createMatcher } from '../../../support/create-matcher.ts'

const JA4 = 't13d1516h2_8daaf6152771_02713d6af862'

const base = { name: 'a', limit: 1, window: '1s' } as const
async function meets(match: MatchOptions, cf: object | undefined, url = '/') {
  const { policies } = await createMatcher({ policies: [{ ...base, match }] })(
    url,
    {},
    cf ? { cf: cf as Record<string, unknown> } : {},
  )
  return policies.length > 0
}
async function keyOf(key: PolicyOptions['key'], cf: Record<string, unknown>) {
  const { policies } = await createMatcher({ policies: [{ ...base, key }] })('/', {}, { cf })
  const [one] = policies
  return one!.partitionKey.map(([, value]) => value)
}

const bot = (botManagement: object, rest = {}) => ({ botManagement, ...rest })
const crawler = bot({ score: 1, verifiedBot: true }, { verifiedBotCategory: 'AI Crawler' })
const person = bot({ score: 90, verifiedBot: false, ja4: JA4 }, { verifiedBotCategory: '' })

describe('a condition on bots', () => {
  test.each<[MatchOptions, object, boolean]>([
    [{ verifiedBot: true }, crawler, true],
    [{ verifiedBot: true }, person, false],
    [{ verifiedBot: false }, crawler, false],
    [{ verifiedBot: false }, person, true],
    [{ verifiedBot: false }, bot({ verifiedBot: false }), true],
    [{ verifiedBot: 'ai crawler' }, crawler, true],
    [{ verifiedBot: ['AI Search', 'AI CRAWLER'] }, crawler, true],
    [{ verifiedBot: 'AI Search' }, crawler, false],
    [{ verifiedBot: 'AI Crawler' }, person, false],
    [{ verifiedBot: 'Other' }, bot({ verifiedBot: true }), true],
    [{ verifiedBot: true }, { verifiedBotCategory: 'Webhooks' }, true],
    [{ verifiedBot: false }, { verifiedBotCategory: '' }, true],
    [{ ja4: JA4.toUpperCase() }, person, true],
    [{ ja4: ['q13d*', 't13d*'] }, person, true],
    [{ ja4: 'q13d*' }, person, false],
    [{ botScore: { below: 30 } }, crawler, true],
    [{ botScore: { below: 30 } }, bot({ score: 29 }), true],
    [{ botScore: { below: 30 } }, bot({ score: 30 }), false],
    [{ botScore: { atLeast: 30 } }, bot({ score: 30 }), true],
    [{ botScore: { atLeast: 30 } }, bot({ score: 29 }), false],
    [{ botScore: { atLeast: 2, below: 30 } }, crawler, false],
    [{ botScore: { atLeast: 99 } }, bot({ score: 99 }), true],
    [{ asn: 64500 }, { asn: 64500 }, true],
    [{ asn: [64501, 64500] }, { asn: 64500 }, true],
    [{ asn: 64500 }, { asn: 645000 }, false],
  ])('The condition %j for the properties %j evaluates to %s.', async (match, cf, expected) => {
    expect(await meets(match, cf)).toBe(expected)
    expect(await meets({ not: match }, cf)).toBe(!expected)
  })

  test.each<MatchOptions>([
    { verifiedBot: true },
    { verifiedBot: false },
    { verifiedBot: 'undefined' },
    { ja4: '*_*'.replace('_', 'a') },
    { botScore: { below: 99 } },
    { botScore: { atLeast: 1 } },
    { asn: 64500 },
  ])('The condition %j does not hold, and its negation does, without a value.', async (match) => {
    for (const cf of [
      undefined,
      {},
      { botManagement: {} },
      bot({ score: 0, ja4: '' }),
      bot({ ja4: null }),
    ]) {
      expect(await meets(match, cf)).toBe(false)
      expect(await meets({ not: match }, cf)).toBe(true)
    }
  })
})

describe('a condition on the query', () => {
  test.each<[MatchOptions['query'], string, boolean]>([
    [{ a: 'x' }, '/?a=x', true],
    [{ a: 'x' }, '/?a=X&b', true],
    [{ a: 'x' }, '/?A=x', true], // ASP.NET
    [{ a: 'x' }, '/?[a]=x', true], // Rack, qs
    [{ a_b: 'x' }, '/?a.b=x', true], // PHP
    [{ a: 'x' }, '/?ab=x', false],
    [{ a: 'x' }, '/?a=y&a=x', true],
    [{ a: 'x' }, '/?b=x', false],
    [{ a: 'x y' }, '/?a=x+y', true],
    [{ a: 'é*' }, '/?%61=%C3%A9t%C3%A9', true],
    [{ a: true }, '/?a', true],
    [{ a: true }, '/?b', false],
    [{ a: ['x*', '*z'] }, '/?a=yz', true],
    [{ a: 'x', b: 'y' }, '/?a=x', false],
    [{ a: 'x', b: 'y' }, '/?b=y&a=x', true],
    [{ 'f[]': 'x' }, '/?f%5B%5D=x', true],
  ])('The query %j for %s evaluates to %s.', async (query, url, expected) => {
    expect(await meets({ query }, {}, url)).toBe(expected)
  })
})

test('A key counts by the fingerprint, and by the category of a verified bot.', async () => {
  const key = ['ja4', 'verifiedBot'] as const
  expect(await keyOf([...key], person)).toEqual([JA4, undefined])
  expect(await keyOf([...key], crawler)).toEqual([undefined, 'AI Crawler'])
  expect(await keyOf([...key], bot({ verifiedBot: true }))).toEqual([undefined, 'Other'])
  expect(await keyOf([...key], {})).toEqual([undefined, undefined])
})
