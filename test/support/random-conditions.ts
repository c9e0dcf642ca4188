/** Random conditions and requests. They have few different values, so that a condition often matches a request. */
import fc from 'fast-check'
import type { MatchOptions } from '../../src/core/config/options.ts'

const some = <T>(...values: T[]) =>
  fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 })

const text = some('free', 'free*', 'freedom', '*dom', '*free', 'dom*', '*ee*', 'pro', '*')
  .map((values) => values.filter((value) => value !== '*'))
  .map((values): true | string[] => (values.length > 0 ? values : true))

const fields = {
  method: some('GET', 'HEAD', 'POST', 'PUT'),
  host: some('a.test', 'x.a.test', 'b.test', '*.a.test', '*.x.a.test', '*.test'),
  path: some(
    '/',
    '/*',
    '/a',
    '/a/*',
    '/a/b',
    '/A/%62/',
    '/a/:x',
    '/:x',
    '/:x/b',
    '/:x/*',
    '/:x/:y/*',
    '/É',
    '/é',
    '/a/../b',
    '/./*',
  ),
  header: fc.dictionary(fc.constantFrom('x-a', 'X-A', 'x-b'), text, { minKeys: 1, maxKeys: 2 }),
  query: fc.dictionary(fc.constantFrom('a', 'B'), text, { minKeys: 1, maxKeys: 2 }),
  country: some('DE', 'fr', 'XX'),
  asn: some(64500, 64501, 64502),
  ja4: some('t13d*', 't13d1516h2_8daaf6152771_02713d6af862', '*02713D6AF862'),
  verifiedBot: fc.oneof(fc.boolean(), some('AI Crawler', 'ai assistant', 'Other')),
  botScore: fc.constantFrom(
    { below: 30 },
    { atLeast: 30 },
    { atLeast: 2, below: 50 },
    { below: 2 },
  ),
  ip: some(
    '10.0.0.0/8',
    '10.1.0.0/16',
    '10.1.2.3',
    '10.1.2.0/25',
    '10.1.2.128/25',
    '::ffff:10.1.2.0/120',
    '0.0.0.0/0',
    '2001:db8::/32',
    '2001:db8:0:1::/64',
    '2001:db8::7',
    '::/0',
  ),
}

/** Up to three fields, because conditions with more fields rarely match. `not` is at most `depth` levels deep. */
const matchOf = (depth: number): fc.Arbitrary<MatchOptions> =>
  fc
    .record({
      ...fields,
      ...(depth > 0 && { not: fc.array(matchOf(depth - 1), { minLength: 1, maxLength: 3 }) }),
    })
    .chain((all) =>
      fc
        .subarray(Object.keys(all) as (keyof typeof all)[], { maxLength: 3 })
        .map((names): MatchOptions => Object.fromEntries(names.map((name) => [name, all[name]]))),
    )

export const match = matchOf(2)

/** A request as `createMatcher` takes it. */
export const request = fc
  .record({
    method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PURGE'),
    host: fc.constantFrom('a.test', 'x.a.test', 'y.x.a.test', 'b.test', 'other.example'),
    path: fc.constantFrom(
      '/',
      '/a',
      '/A/',
      '/a/b',
      '/a/%62/c',
      '/b',
      '/b/b',
      '/b/c/d',
      '/%C3%89',
      '/é',
      '/c;x/b',
      '/a/x%2F..%2F..',
      '/a/..;',
      '/b/..%2Fa',
      '/a%2Fb',
      '/A/b',
    ),
    headers: fc.dictionary(
      fc.constantFrom('x-a', 'x-b'),
      fc.constantFrom('', 'free', 'Freedom', 'pro', 'seed', 'kingdom', 'xfree', 'domain'),
    ),
    query: fc.constantFrom('', '?a=free', '?a=pro&a=Freedom', '?B=seed&a', '?b=free'),
    country: fc.constantFrom(undefined, 'DE', 'FR', 'XX', 'AT'),
    asn: fc.constantFrom(undefined, 64500, 64501),
    bot: fc.constantFrom(
      undefined,
      { score: 0, verifiedBot: false },
      { score: 1, verifiedBot: true },
      { score: 30, verifiedBot: false, ja4: 't13d1516h2_8daaf6152771_02713d6af862' },
      { score: 99, ja4: 'q13d0312h3_55b375c5d22e_06cda9e17597' },
    ),
    category: fc.constantFrom(undefined, '', 'AI Crawler', 'Search Engine Crawler'),
    address: fc.constantFrom(
      undefined,
      '10.1.2.3',
      '10.1.2.4',
      '10.1.2.200',
      '10.1.9.9',
      '10.9.9.9',
      '192.0.2.1',
      '::ffff:10.1.2.3',
      '2001:db8::7',
      '2001:db8:0:1::1',
      '2001:db8:1::',
      'fe80::1',
    ),
  })
  .map(({ method, host, path, query, headers, country, asn, bot, category, address }) => ({
    url: `https://${host}${path}${query}`,
    init: { method, headers: { ...headers, ...(address && { 'cf-connecting-ip': address }) } },
    circumstances: {
      cf: {
        ...(country && { country }),
        ...(asn && { asn }),
        ...(bot && { botManagement: bot }),
        ...(category !== undefined && { verifiedBotCategory: category }),
      },
    },
  }))
