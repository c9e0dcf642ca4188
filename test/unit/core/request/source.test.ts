import { parseCookie } from 'cookie'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UNREADABLE } from '../../../../src/core/base/part.ts'
import type { Source } from '../../../../src/core/config/schema/credentials.ts'
import { readFirst, readSource } from '../../../../src/core/request/source.ts'
import { anyText } from '../../../support/any-text.ts'
import { shortestRun } from '../../../support/shortest-run.ts'
import { viewOnCloudflare } from '../../../support/view-on-cloudflare.ts'

const sourceOf = (text: string): Source => {
  const [, kind, name] = /^(\w+):?(.*)$/s.exec(text)!
  return { source: kind as Source['source'], name: name! }
}

function viewWith(headers: Record<string, string> | [string, string][] = {}, query = '') {
  const request = new Request(`https://www.example.com/${query}`, { headers })
  const runtime = { env: {}, waitUntil() {}, context: undefined }
  return viewOnCloudflare(request, runtime, { caseSensitivePaths: false })
}

test.each([
  // source, headers, query, value
  ['header:x-a', { 'X-A': 'one' }, '', 'one'],
  ['header:x-a', { 'X-A': '  one ' }, '', 'one'],
  ['header:x-a', { 'X-A': '' }, '', undefined],
  ['header:x-a', { 'X-B': 'one' }, '', undefined],
  ['header:x-a', { 'X-A': 'one, two' }, '', UNREADABLE], // a field that was sent twice
  ['header:x-a', { 'X-A': 'one, one' }, '', UNREADABLE],
  ['header:x-a', { 'X-A': 'one,' }, '', UNREADABLE],
  ['header:x-a', { 'X-A': ', one' }, '', UNREADABLE],
  ['header:x-forwarded-for', { 'X-Forwarded-For': '192.0.2.1, 192.0.2.2' }, '', UNREADABLE],
  ['header:forwarded', { Forwarded: 'for=a, for=b' }, '', UNREADABLE],
  ['header:authorization', { Authorization: 'Bearer a, x' }, '', UNREADABLE],
  ['header:accept-language', { 'Accept-Language': 'de, en' }, '', 'de, en'],
  ['header:user-agent', { 'User-Agent': 'a (b, c)' }, '', 'a (b, c)'],
  ['bearer', { Authorization: 'Bearer a.b.c' }, '', 'a.b.c'],
  ['bearer', { Authorization: 'bEARER   a.b.c' }, '', 'a.b.c'],
  ['bearer', { Authorization: 'Bearer a b' }, '', 'a'],
  ['bearer', { Authorization: 'Bearer\ta' }, '', 'a'],
  ['bearer', { Authorization: 'Bearer a\tb' }, '', 'a'],
  ['bearer', { Authorization: 'Bearer a Bearer b' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer a;b' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer token="a"' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer\x85a' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer' }, '', undefined],
  ['bearer', { Authorization: 'Bearer ' }, '', undefined],
  ['bearer', { Authorization: 'Bearera' }, '', undefined],
  ['bearer', { Authorization: 'Basic YTpi' }, '', undefined],
  ['bearer', { Authorization: 'Token a' }, '', undefined],
  ['bearer', { Authorization: 'Token a.b.c' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Token token="a.b.c", x="y"' }, '', UNREADABLE],
  ['bearer', { Authorization: 'a.b.c' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Basic YTpi, DPoP a.b.c' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Digest username="a.b.c", realm="d"' }, '', undefined],
  ['bearer', { Authorization: 'XBearer a' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer a, Bearer a' }, '', 'a'],
  ['bearer', { Authorization: 'Bearer a, Bearer b' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Basic YTpi, Bearer b' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Bearer a, Digest b="c"' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Digest a="b", c="d"' }, '', undefined],
  ['bearer', { Authorization: 'bEARER \t a' }, '', 'a'],
  ['bearer', { Authorization: 'Bearer a, x' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Basic YTpi Bearer b' }, '', UNREADABLE],
  ['bearer', { Authorization: 'DPoP a.b.c' }, '', UNREADABLE],
  ['bearer', { Authorization: 'Digest username="a.b.c", realm="d.e.f", nonce="g"' }, '', undefined],
  [
    'bearer',
    { Authorization: 'AWS4-HMAC-SHA256 Credential=a/20261122/eu/s3/aws4, Signature=b' },
    '',
    undefined,
  ],
  ['query:key', {}, '?key=one', 'one'],
  ['query:key', {}, '?key=one&key=one', 'one'],
  ['query:key', {}, '?key=one&key=two', UNREADABLE],
  ['query:key', {}, '?key=&key=two', 'two'],
  ['query:key', {}, '?key', undefined],
  ['query:key', {}, '?KEY=one', UNREADABLE], // ASP.NET
  ['query:key', {}, '?key[]=one', UNREADABLE],
  ['query:key', {}, '?[key]=one', UNREADABLE], // Rack, qs
  ['query:key', {}, '?+key=one', UNREADABLE], // PHP
  ['query:key', {}, '?key%00x=one', UNREADABLE],
  ['query:a_key', {}, '?a.key=one', UNREADABLE],
  ['query:a_key', {}, '?a[key=one', UNREADABLE],
  ['query:a_key', {}, '?a-key=one', undefined],
  ['query:key', {}, '?key2=one&akey=two&x[key]=three', undefined],
  ['query:key', {}, '?%u006bey=one', UNREADABLE], // ASP.NET
  ['query:key', {}, '?x=1;key=one', UNREADABLE], // Rack before 3
  ['query:key', {}, '?key=one&x=1;y', 'one'],
  ['query:key', {}, '?key=one%', UNREADABLE], // Go reads none
  ['query:key', {}, `?key=one${'&a'.repeat(1_000)}`, UNREADABLE],
  ['header:x-a', { X_A: 'one' }, '', UNREADABLE], // CGI
  ['header:x-a', { X_A: 'one', 'X-A': 'one' }, '', 'one'],
  ['header:x-a', { X_A: 'two', 'X-A': 'one' }, '', UNREADABLE],
  ['header:x-a-b', { 'X-A_b': 'one' }, '', UNREADABLE],
  ['header:x-a', { 'X.A': 'one' }, '', UNREADABLE],
  ['header:x-a', { 'X-A': 'one\x85' }, '', UNREADABLE], // Python
  ['header:x-a', { 'X-A': '\xa0one' }, '', UNREADABLE],
  ['header:x-a', { 'X-A': 'caf\xc3\xa9' }, '', 'café'],
  ['header:x-a', { 'X-A': 'caf\xe9' }, '', 'café'],
  ['header:x-a', { 'X-A': '\xc3\x80' }, '', 'À'],
  ['header:x-a-b', { X_AB: 'one' }, '', undefined],
  ['header:x-a-b-c', { 'X-A_b-C': 'one' }, '', UNREADABLE],
  ['header:a-b-c-d-e-f', { A_B_C_D_E_F: 'one' }, '', UNREADABLE],
  ['query:key', {}, '?k%65y=%6fne', 'one'],
  ['query:key', {}, '?key=%ff', '\ufffd'],
  ['cookie:id', { Cookie: 'id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'a=b;id=one ;c=d' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=one; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=one; id=two' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id="one"' }, '', 'one'],
  ['cookie:id', { Cookie: 'id="%6fne"; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: ' id = "one" ' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=""' }, '', undefined],
  ['cookie:id', { Cookie: 'id="one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id="' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id="o\\156e"' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=o"n"e' }, '', 'o"n"e'],
  ['cookie:id', { Cookie: 'a=b, id=one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'a=b id = one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=one, id=one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=one, a=b' }, '', UNREADABLE], // a field that was sent twice, in Workers
  ['cookie:id', { Cookie: 'id=one a' }, '', UNREADABLE], // http.cookies ends the value
  ['cookie:id', { Cookie: 'id="one a"' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=one%20a' }, '', 'one a'],
  ['cookie:id', { Cookie: 'id=caf\xc3\xa9' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'a=the id of b' }, '', undefined],
  ['cookie:id', { Cookie: 'a="id="' }, '', undefined],
  ['cookie:id', { Cookie: 'id=%6fne; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'ID=one' }, '', UNREADABLE], // ASP.NET
  ['cookie:id', { Cookie: 'i%64=one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id[]=one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: '\xe3\x80\x80id=one' }, '', UNREADABLE], // Django: a space of Unicode
  ['cookie:id', { Cookie: 'id\xa0=one' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=one\xa0' }, '', UNREADABLE],
  ['cookie:a_id', { Cookie: 'a.id=one' }, '', UNREADABLE], // PHP
  ['cookie:id', { Cookie: 'id=j:"one"' }, '', UNREADABLE], // cookie-parser
  ['cookie:id', { Cookie: 'id=j%3A%22one%22' }, '', UNREADABLE],
  ['cookie:id', { Cookie: 'id=a+b%2Bc' }, '', 'a b c'],
  ['cookie:id', { Cookie: 'xid=one' }, '', undefined],
  ['cookie:id', { Cookie: 'id' }, '', undefined],
  ['cookie:id', { Cookie: 'a="; id=one; b="' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=%ff%' }, '', '%ff%'],
  ['cookie:id', { Cookie: 'id=a=b' }, '', 'a=b'],
  ['cookie:__proto__', { Cookie: 'a=b' }, '', undefined],
  ['cookie:__proto__', { Cookie: '__proto__=one' }, '', 'one'],
  ['cookie:constructor', { Cookie: 'a=constructor' }, '', undefined],
] as const)(
  'The source %s of the headers %j and the query "%s" has the value %j.',
  (where, headers, query, expected) => {
    expect(readSource(sourceOf(where), viewWith(headers, query))).toBe(expected)
  },
)

describe('the first of several sources', () => {
  const sources = ['header:x-a', 'bearer', 'query:key', 'cookie:id'].map(sourceOf)
  test.each([
    [{ 'X-A': 'a', Authorization: 'Bearer b' }, '?key=c', 'a'],
    [{ Authorization: 'Bearer b' }, '?key=c', 'b'],
    [{ Authorization: 'Basic YTpi' }, '?key=c', 'c'],
    [{ Cookie: 'id=d' }, '', 'd'],
    [{}, '', undefined],
    // Two values in one source are unreadable, and later sources are not read.
    [{ Authorization: 'Bearer a, Bearer b' }, '?key=c', UNREADABLE],
    [{ Cookie: 'id=d' }, '?key=a&key=b', UNREADABLE],
  ] as const)(
    'The first value in the headers %j and the query "%s" is %j.',
    (headers, query, expected) => {
      expect(readFirst(sources, viewWith(headers, query))).toBe(expected)
    },
  )
})

describe('arbitrary input of a client', () => {
  /** A header value as a runtime passes it on: no control characters, and one byte for each character. */
  const field = fc.string({
    unit: fc.oneof(
      fc.constantFrom(...'=;, "%&?\\\t', 'Bearer ', 'id', 'key', '__proto__', '%ff', 'a'),
      fc.integer({ min: 0xa1, max: 0xff }).map((code) => String.fromCharCode(code)),
    ),
    maxLength: 40,
  })
  const where = fc
    .constantFrom(
      'header:x-a',
      'bearer',
      'query:key',
      'query:__proto__',
      'cookie:id',
      'cookie:__proto__',
    )
    .map(sourceOf)

  test('Reading a source never throws, and returns a non-empty text, an unreadable value or nothing.', () => {
    fc.assert(
      fc.property(field, field, field, anyText, where, (a, b, c, query, from) => {
        const request = viewWith({ 'X-A': a, Authorization: b, Cookie: c }).with({
          query: new URLSearchParams(query),
        })
        for (const value of [readSource(from, request), readFirst([from], request)]) {
          const isText = typeof value === 'string' && value !== ''
          expect(value === undefined || value === UNREADABLE || isText).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('A cookie has the value that the package cookie reads.', () => {
    const characters = fc.constantFrom(..."ab=%61%C3%A4%ff+\xa0\t '\\")
    const value = fc.array(characters, { maxLength: 12 }).map((list) => list.join(''))
    fc.assert(
      fc.property(value, (value) => {
        const Cookie = `id=${value}`
        const request = viewWith({ Cookie })
        const expected = parseCookie(request.request.headers.get('cookie')!).id || undefined
        const found = readSource(sourceOf('cookie:id'), request)
        if (found !== UNREADABLE) expect(found).toBe(expected?.replaceAll('+', ' '))
      }),
      { numRuns: 500 },
    )
  })

  test('A cookie is read as written, whatever cookies are before and after it.', () => {
    const plain = fc.stringMatching(/^[\w.-]{1,20}$/)
    const other = fc.stringMatching(/^[a-h]{1,5}=[\w ",%=]{0,10}$/)
    const isSafe = (text: string) => !/[ ,]id *=/.test(text) // some frameworks read this as the cookie
    const others = fc.array(other.filter(isSafe), { maxLength: 5 })
    fc.assert(
      fc.property(plain, others, others, (value, before, after) => {
        const Cookie = [...before, `id=${value}`, ...after].join('; ')
        expect(readSource(sourceOf('cookie:id'), viewWith({ Cookie }))).toBe(value)
      }),
    )
  })

  test('Reading headers of 100 KB takes less than a second.', () => {
    const shortestMs = shortestRun(1000, () => {
      const many = viewWith({
        Cookie: 'id;'.repeat(33_000),
        Authorization: `Bearer ${' '.repeat(99_000)},${','.repeat(900)}`,
      })
      const blank = viewWith({
        Cookie: `a=id${' '.repeat(99_000)}b; id="${'a'.repeat(50_000)}`,
        Authorization: `Bearer a${' bearer'.repeat(14_000)}`,
      })
      expect(readSource(sourceOf('cookie:id'), many)).toBe(undefined)
      expect(readSource(sourceOf('bearer'), many)).toBe(UNREADABLE)
      expect(readSource(sourceOf('cookie:id'), blank)).toBe(UNREADABLE)
      expect(readSource(sourceOf('bearer'), blank)).toBe(UNREADABLE)
    })
    expect(shortestMs).toBeLessThan(1000)
  })
})
