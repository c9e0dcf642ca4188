import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as api from '../../../src/api/schema.ts'
import { checkedBody as check, MAX_PROBLEMS, type Shape } from '../../../src/api/shapes.ts'
import { isAmbiguous } from '../../../src/core/base/ambiguous-target.ts'
import { parseDuration } from '../../../src/core/base/duration.ts'
import { networkRange } from '../../../src/core/base/ip.ts'
import type { SchemaName } from '../../../tools/openapi/schemas.ts'
import { byJsonSchema } from '../../support/json-schema.ts'
import { isLong } from '../../support/long.ts'
import { shortestRun } from '../../support/shortest-run.ts'
import { type BodyName, bodiesFor, requests } from './random-bodies.ts'

const RUNS = isLong ? 3000 : 250

const named = {
  RequestDescription: api.requestDescription,
  KeyValues: api.keyValues,
  Ask: api.ask,
  Refund: api.refund,
  Target: api.targetBody,
  Ban: api.banBody,
  Override: api.overrideBody,
  Settlement: api.settle,
  Try: api.tryBody,
} satisfies Partial<Record<SchemaName, Shape<unknown>>>

const inBodies: Record<string, Shape<unknown>> = {
  decide: api.decideBody,
  refund: api.refundBody,
  ...named,
}

const problemsOf = (schema: Shape<unknown>, body: unknown) => check(schema, body).problems ?? []
/** The problems of a body, one line each. */
const messagesOf = (schema: Shape<unknown>, body: unknown) =>
  problemsOf(schema, body).map(({ path, expected, got }) => `${path}: ${expected}, got ${got}`)

describe('a valid body', () => {
  test.each([
    ['one policy', { policy: 'a', key: 'x' }],
    [
      'a key of several parts with a missing part',
      { policy: 'a', key: ['x', 7, null], plan: 'pro' },
    ],
    ['a request', { request: { url: 'https://a.example/' }, cost: 0, mode: 'peek' }],
    ['a list', [{ policy: 'a', key: 1 }, { request: { url: 'http://a' } }]],
  ])('A valid body with %s parses to itself.', (_, body) => {
    expect(check(api.decideBody, body).output).toEqual(body)
  })

  test('The duration of a ban parses to milliseconds.', () => {
    expect(check(api.banBody, { key: 'x', for: '1h' }).output).toEqual({
      key: 'x',
      for: 3_600_000,
    })
  })
})

describe('an invalid body', () => {
  test('Each error has its path, beginning with the index in the list.', () => {
    const body = [
      { policy: 'a', key: 'x' },
      { request: { url: '/x', headers: { 'a b': 'v', 'x-c': 'v\n' } } },
      { policy: 'a', key: ['x', true], cost: -1, plam: 'pro' },
    ]
    expect(problemsOf(api.decideBody, body).map(({ path }) => path)).toEqual([
      '[1].request.url',
      '[1].request.headers.a b',
      '[1].request.headers.x-c',
      '[2].key[1]',
      '[2].cost',
      '[2].plam',
    ])
  })

  test.each([
    ['a number instead of an object', 7, ['body: an object, got 7']],
    ['an empty list', [], ['body: 1 to 100 asks, got []']],
    [
      'no fields',
      {},
      [
        'policy: the name of a policy (or send limits or request instead of policy and key), got nothing',
        'key: a text of up to 1024 characters, a number, or a list of them, got nothing',
      ],
    ],
    [
      'policy and request',
      { policy: 'a', key: 'x', request: { url: 'http://a' } },
      ['request: nothing (send only one of policy, limits and request), got {"url":"http://a"}'],
    ],
    [
      'limits and a key',
      { limits: [['a', 'x']], key: 'x' },
      ['key: nothing (each limit has its key), got "x"'],
    ],
    [
      'limits without a key and without a name',
      { limits: [['a'], ['', 'x'], 'a', ['a', 'x', 'y']] },
      [
        'limits[0][1]: a text of up to 1024 characters, a number, or a list of them, got nothing',
        'limits[1][0]: the name of a policy, got ""',
        'limits[2]: ["the name of a policy", a key], got "a"',
        'limits[3][2]: ["the name of a policy", a key], got "y"',
      ],
    ],
    ['no limits', { limits: [] }, ['limits: 1 to 100 limits, got []']],
    [
      'a wait of more than a minute',
      { policy: 'a', key: 'x', waitMs: 60_001 },
      ['waitMs: a whole number of milliseconds from 0 to 60000, got 60001'],
    ],
    [
      'a key and a plan in addition to a request',
      { request: { url: 'http://a' }, key: 'x', plan: 'pro' },
      [
        'key: nothing (the key is read from request), got "x"',
        'plan: nothing (the plan is read from request), got "pro"',
      ],
    ],
    [
      'fields named like properties of Object.prototype',
      JSON.parse('{ "policy": "a", "key": "x", "__proto__": 1, "constructor": 2, "toString": 3 }'),
      ['__proto__', 'constructor', 'toString'].map(
        (name, i) =>
          `${name}: one of the fields policy, key, plan, cost, mode, waitMs, got ${i + 1}`,
      ),
    ],
  ])('The errors of a body with %s say what is expected.', (_, body, expected) => {
    expect(messagesOf(api.decideBody, body)).toEqual(expected)
  })

  test('The errors of a hostile body are limited in number and length, and take less than 250 ms.', () => {
    const many = (n: number) =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`x${i}`, i]))
    const hostile = [
      many(9000),
      Array(100).fill(many(90)),
      Array(32_000).fill(0),
      { request: { url: 'http://a', headers: many(9000) } },
      { ['x'.repeat(60_000)]: 'x'.repeat(5000) },
      { policy: 'x'.repeat(60_000), key: Array(10_000).fill('x') },
      'x'.repeat(65_000),
    ]
    for (const body of hostile) {
      for (const schema of Object.values(inBodies)) {
        expect(shortestRun(250, () => problemsOf(schema, body))).toBeLessThan(250)
        const problems = problemsOf(schema, body)
        expect(problems.length).toBeGreaterThan(0)
        expect(problems.length).toBeLessThanOrEqual(MAX_PROBLEMS)
        expect(Math.max(...problems.map(({ got }) => got.length))).toBeLessThanOrEqual(61)
        expect(Math.max(...problems.map(({ path }) => path.length))).toBeLessThanOrEqual(100)
      }
    }
  })
})

test('No JSON value makes a schema throw.', () => {
  fc.assert(
    fc.property(fc.oneof(bodiesFor(), fc.jsonValue()), (body) => {
      for (const schema of Object.values(inBodies)) check(schema, body)
    }),
    { numRuns: RUNS },
  )
})

/** Checks that JSON Schema cannot express, so that it accepts more bodies than the Worker. */
const beyondJsonSchema = {
  url: ({ url }: { url?: unknown }) =>
    typeof url === 'string' && (!URL.canParse(url) || isAmbiguous(url)),
  ip: ({ ip }: { ip?: unknown }) => typeof ip === 'string' && !networkRange(ip),
  for: (body: { for?: unknown }) =>
    (typeof body.for === 'string' && !parseDuration(body.for)) ||
    ('limit' in body && (parseDuration(body.for) ?? 0) > 3_653 * 86_400_000),
  /** The Worker counts UTF-16 code units, JSON Schema counts code points. */
  length: (text: unknown) => typeof text === 'string' && [...text].length < text.length,
}
function isBeyond(body: unknown): boolean {
  if (beyondJsonSchema.length(body)) return true
  if (typeof body !== 'object' || body === null) return false
  return (
    beyondJsonSchema.url(body as { url: unknown }) ||
    beyondJsonSchema.ip(body as { ip: unknown }) ||
    beyondJsonSchema.for(body as { for: unknown }) ||
    Object.values(body).some(isBeyond)
  )
}
test.each(Object.entries<Shape<unknown>>(named))(
  'The JSON Schema of %s accepts the same bodies as the Worker.',
  (name, schema) => {
    const validate = byJsonSchema(name as BodyName)
    const counts = [0, 0]
    fc.assert(
      fc.property(bodiesFor(name as BodyName), (body) => {
        const accepted = check(schema, body).problems === undefined
        const acceptedByJsonSchema = validate(body)
        counts[accepted ? 1 : 0]! += 1
        if (accepted !== acceptedByJsonSchema)
          expect([acceptedByJsonSchema, isBeyond(body)]).toEqual([true, true])
      }),
      { numRuns: RUNS },
    )
    // The generator must make valid and invalid bodies.
    expect(Math.min(...counts)).toBeGreaterThan(RUNS / 100)
  },
)

test('The runtime can make a Request of every accepted description.', () => {
  let made = 0
  fc.assert(
    fc.property(requests, (description) => {
      const { output } = check(api.requestDescription, description)
      if (!output) return
      const { url, method = 'GET', headers = {} } = output
      new Request(url, { method, headers })
      made += 1
    }),
    { numRuns: RUNS },
  )
  expect(made).toBeGreaterThan(RUNS / 30)
})
