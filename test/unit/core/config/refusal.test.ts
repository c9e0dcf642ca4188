/** The configuration of refusals, and of conditions on bots and queries. */

import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { withDocument } from '../../../../src/features/live/stages.ts'
import { createAppLimiter } from '../../../../src/hosts/app/app-limiter.ts'
import { refusals } from '../../../support/features.ts'
import { errorOf, expectedBy } from '../../../support/parse.ts'

const base = { name: 'a', limit: 1, window: '1s' }

/** The problems of a configuration, each as "path: expected". */
const problems = (options: object) =>
  expectedBy(() => parseConfig({ policies: [base], use: [refusals()], ...options }))
const STATUS = 'status: a whole number from 400 to 599'
const VALUES = 'an object of names and values like { "x-plan": "free" }'
const KNOWN =
  'with no placeholders except {{limit}}, {{remaining}}, {{retryAfter}}, {{window}}, {{cost}}, {{policy}}, {{reason}}, {{status}}'

describe('a refusal', () => {
  test.each([
    [{}],
    [{ status: 400 }],
    [{ status: 599, headers: {} }],
    [{ body: {} }],
    [{ body: { json: 'text', text: '', html: '<style>p{color:red}</style>{limit}' } }],
    [{ body: { json: [1, null, { a: { b: {} } }], text: '{{ limit }} {{policy}}' } }],
    [{ headers: { 'x-a': '{{limit}}', 'Content-Security-Policy': "default-src 'none'" } }],
    [() => new Response()],
  ])('The refusal %j is valid, in a policy and for all.', (refusal) => {
    expect(problems({ refusal })).toEqual([])
    expect(problems({ policies: [{ ...base, refusal }] })).toEqual([])
  })

  test.each<[unknown, string]>([
    [{ status: 200 }, `${STATUS} (200 only with body: "json-rpc" or "graphql")`],
    [{ status: 399 }, STATUS],
    [{ status: 600 }, STATUS],
    [{ status: '429' }, STATUS],
    [{ body: { text: 'in {{retryafter}}' } }, `body.text: text ${KNOWN}`],
    [{ body: { html: '{{}}' } }, `body.html: text ${KNOWN}`],
    [{ body: { html: '{{user.name}}' } }, `body.html: text ${KNOWN}`],
    [{ body: { html: 7 } }, `body.html: text ${KNOWN}`],
    [{ body: { json: { a: ['{{constructor}}'] } } }, `body.json: a JSON value ${KNOWN}`],
    [{ body: { json: () => 1 } }, `body.json: a JSON value ${KNOWN}`],
    [{ body: { xml: '<a/>' } }, 'body.xml: one of the fields json, text, html'],
    [{ headers: { 'x-a': 'a\r\nb: c' } }, `headers.x-a: visible ASCII characters ${KNOWN}`],
    [{ headers: { 'x-a': 'é' } }, `headers.x-a: visible ASCII characters ${KNOWN}`],
    [{ headers: { 'x-a': '{{limits}}' } }, `headers.x-a: visible ASCII characters ${KNOWN}`],
    [{ headers: { 'x-a': 7 } }, `headers.x-a: visible ASCII characters ${KNOWN}`],
    [{ headers: { 'x a': 'b' } }, 'headers.x a: the name of a header'],
    [{ headers: { 'x:a\r\n': 'b' } }, 'headers.x:a\r\n: the name of a header'],
    [{ headers: 'x-a: b' }, 'headers: an object'],
  ])('The refusal %j is refused with one problem.', (refusal, problem) => {
    expect(problems({ refusal })).toEqual([`refusal.${problem}`])
    expect(problems({ policies: [{ ...base, refusal }] })).toEqual([
      `policies[0].refusal.${problem}`,
    ])
  })

  const cyclic: object[] = []
  cyclic.push(cyclic)
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  test.each([
    ['with a cycle', { a: cyclic }],
    ['with a BigInt', { a: 1n }],
    ['that is nested too deep', deep],
    [
      'that throws',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
  ])('A JSON body %s is refused with one problem.', (_, json) => {
    expect(problems({ refusal: { body: { json } } })).toEqual([
      `refusal.body.json: a JSON value ${KNOWN}`,
    ])
  })

  test('A refusal that is neither an object nor a function is refused.', () => {
    expect(problems({ refusal: 'slow down' })).toEqual([
      'refusal: an object with status, body and headers, "json-rpc", "graphql", or a function',
    ])
  })

  test('A function needs no refusals().', () => {
    const refusal = () => new Response()
    expect(errorOf(() => createAppLimiter({ refusal, policies: [] }))).toBeUndefined()
  })

  test('A live document may contain the refusal of a policy.', () => {
    const refusal = { status: 420, body: { text: 'Wait {{retryAfter}} s.' } }
    const document = JSON.parse(JSON.stringify({ policies: [{ ...base, refusal }] }))
    expect(
      parseConfig(withDocument(document, { policies: [], use: [refusals()] })).policies[0]!.refusal,
    ).toMatchObject(refusal)
  })
})

describe('a condition', () => {
  const of = (match: object) => problems({ policies: [{ ...base, match }] })

  test.each([
    { query: { action: 'export', 'filter[a]': ['x*', '*y'], debug: true } },
    { asn: 64500 },
    { asn: [1, 4_294_967_295] },
    { verifiedBot: true },
    { verifiedBot: false },
    { verifiedBot: ['AI Crawler', 'ai search'] },
    { ja4: 't13d*' },
    { ja4: ['t13d1516h2_8daaf6152771_02713d6af862'] },
    { botScore: { below: 30 } },
    { botScore: { atLeast: 1 } },
    { botScore: { atLeast: 2, below: 3 } },
    { not: { botScore: { atLeast: 99 } } },
  ])('%j is valid.', (match) => {
    expect(of(match)).toEqual([])
  })

  test.each<[object, string]>([
    [{ query: {} }, `query: ${VALUES}`],
    [{ query: 'a=b' }, `query: ${VALUES}`],
    [{ query: JSON.parse('{"__proto__":"x"}') }, `query: ${VALUES}`],
    [
      { query: { a: 'b*c' } },
      'query.a: true, or a string with "*" only at its start or end, like "curl/*"',
    ],
    [{ asn: 'AS64500' }, 'asn: a whole number from 1 to 4294967295'],
    [{ asn: [] }, 'asn: at least one value'],
    [{ verifiedBot: 7 }, 'verifiedBot: true, false, or a category like "AI Crawler"'],
    [{ verifiedBot: '' }, 'verifiedBot: true, false, or a category like "AI Crawler"'],
    [{ botScore: 30 }, 'botScore: an object'],
    [{ botScore: {} }, 'botScore.below: a score above atLeast'],
    [{ botScore: { below: 1 } }, 'botScore.below: a whole number from 2 to 99'],
    [{ botScore: { atLeast: 30, below: 30 } }, 'botScore.below: a score above atLeast'],
    [{ botScore: { atLeast: 0 } }, 'botScore.atLeast: a whole number from 1 to 99'],
  ])('%j is refused with one problem.', (match, problem) => {
    expect(of(match)).toEqual([`policies[0].match.${problem}`])
  })
})
