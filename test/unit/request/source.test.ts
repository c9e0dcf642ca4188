import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Source } from '../../../src/config/schema/credentials.ts'
import { readFirst, readSource, UNREADABLE } from '../../../src/request/source.ts'
import { viewOf } from '../../../src/request/view.ts'

const source = (text: string): Source => {
  const [, kind, name] = /^(\w+):?(.*)$/s.exec(text)!
  return { source: kind as Source['source'], name: name! }
}

function seen(headers: Record<string, string> | [string, string][] = {}, query = '') {
  const request = new Request(`https://www.example.com/${query}`, { headers })
  const runtime = { env: {}, waitUntil() {}, context: undefined }
  return viewOf(request, runtime, { caseSensitivePaths: false })
}

test.each([
  // where, what is sent, what is read
  ['header:x-a', { 'X-A': 'one' }, '', 'one'],
  ['header:x-a', { 'X-A': '  one ' }, '', 'one'],
  ['header:x-a', { 'X-A': '' }, '', undefined],
  ['header:x-a', { 'X-B': 'one' }, '', undefined],
  ['header:x-a', { 'X-A': 'one, two' }, '', 'one, two'],
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
  ['query:key', {}, '?key=one', 'one'],
  ['query:key', {}, '?key=one&key=one', 'one'],
  ['query:key', {}, '?key=one&key=two', UNREADABLE],
  ['query:key', {}, '?key=&key=two', 'two'],
  ['query:key', {}, '?key', undefined],
  ['query:key', {}, '?KEY=one', undefined],
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
  ['cookie:id', { Cookie: 'a=the id of b' }, '', undefined],
  ['cookie:id', { Cookie: 'id=%6fne; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=; id=one' }, '', 'one'],
  ['cookie:id', { Cookie: 'ID=one' }, '', undefined],
  ['cookie:id', { Cookie: 'xid=one' }, '', undefined],
  ['cookie:id', { Cookie: 'id' }, '', undefined],
  ['cookie:id', { Cookie: 'a="; id=one; b="' }, '', 'one'],
  ['cookie:id', { Cookie: 'id=%ff%' }, '', '%ff%'],
  ['cookie:id', { Cookie: 'id=a=b' }, '', 'a=b'],
  ['cookie:__proto__', { Cookie: 'a=b' }, '', undefined],
  ['cookie:__proto__', { Cookie: '__proto__=one' }, '', 'one'],
  ['cookie:constructor', { Cookie: 'a=constructor' }, '', undefined],
] as const)('%s of %j and "%s" is %j', (where, headers, query, expected) => {
  expect(readSource(source(where), seen(headers, query))).toBe(expected)
})

describe('of several sources', () => {
  const sources = ['header:x-a', 'bearer', 'query:key', 'cookie:id'].map(source)
  test.each([
    [{ 'X-A': 'a', Authorization: 'Bearer b' }, '?key=c', 'a'],
    [{ Authorization: 'Bearer b' }, '?key=c', 'b'],
    [{ Authorization: 'Basic YTpi' }, '?key=c', 'c'],
    [{ Cookie: 'id=d' }, '', 'd'],
    [{}, '', undefined],
    // Two values at one place are unreadable, and no later place makes up for them.
    [{ Authorization: 'Bearer a, Bearer b' }, '?key=c', UNREADABLE],
    [{ Cookie: 'id=d' }, '?key=a&key=b', UNREADABLE],
  ] as const)('%j and "%s": the first that is there is %j', (headers, query, expected) => {
    expect(readFirst(sources, seen(headers, query))).toBe(expected)
  })
})

describe('whatever a client sends', () => {
  /** What a field may hold: a runtime hands out no control characters and no more than a byte for each. */
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
    .map(source)

  test('reading never throws, and finds a text that is not empty, something unreadable, or nothing', () => {
    fc.assert(
      fc.property(
        field,
        field,
        field,
        fc.string({ unit: 'binary' }),
        where,
        (a, b, c, query, from) => {
          const request = {
            ...seen({ 'X-A': a, Authorization: b, Cookie: c }),
            query: new URLSearchParams(query),
          }
          for (const value of [readSource(from, request), readFirst([from], request)]) {
            const isText = typeof value === 'string' && value !== ''
            expect(value === undefined || value === UNREADABLE || isText).toBe(true)
          }
        },
      ),
      { numRuns: 2000 },
    )
  })

  test('a cookie is read as it was written, whatever stands before and behind it', () => {
    const plain = fc.stringMatching(/^[\w.-]{1,20}$/)
    const other = fc.stringMatching(/^[a-h]{1,5}=[\w ",%=]{0,10}$/)
    const isSafe = (text: string) => !/[ ,]id *=/.test(text) // some take it for the cookie itself
    const others = fc.array(other.filter(isSafe), { maxLength: 5 })
    fc.assert(
      fc.property(plain, others, others, (value, before, after) => {
        const Cookie = [...before, `id=${value}`, ...after].join('; ')
        expect(readSource(source('cookie:id'), seen({ Cookie }))).toBe(value)
      }),
    )
  })

  test('a field of 100 KB takes no longer than it should', () => {
    const many = seen({
      Cookie: 'id;'.repeat(33_000),
      Authorization: `Bearer ${' '.repeat(99_000)},${','.repeat(900)}`,
    })
    const blank = seen({
      Cookie: `a=id${' '.repeat(99_000)}b; id="${'a'.repeat(50_000)}`,
      Authorization: `Bearer a${' bearer'.repeat(14_000)}`,
    })
    const before = performance.now()
    expect(readSource(source('cookie:id'), many)).toBe(undefined)
    expect(readSource(source('bearer'), many)).toBe(UNREADABLE)
    expect(readSource(source('cookie:id'), blank)).toBe(UNREADABLE)
    expect(readSource(source('bearer'), blank)).toBe(UNREADABLE)
    expect(performance.now() - before).toBeLessThan(1000)
  })
})
