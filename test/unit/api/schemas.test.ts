import fc from 'fast-check'
import type { GenericSchema } from 'valibot'
import { describe, expect, test } from 'vitest'
import type { schemas } from '../../../dev/openapi/schemas.ts'
import * as api from '../../../src/api/schema.ts'
import { parseDuration } from '../../../src/base/duration.ts'
import { networkRange } from '../../../src/base/ip.ts'
import { checked } from '../../../src/config/schema/checked.ts'
import { byJsonSchema } from '../../support/json-schema.ts'
import { type BodyName, bodiesFor, requests } from '../../support/random-bodies.ts'

const named = {
  RequestDescription: api.requestDescription,
  KeyValues: api.keyValues,
  Ask: api.ask,
  Refund: api.refund,
  Target: api.target,
  Ban: api.banBody,
  Try: api.tryBody,
} satisfies Partial<typeof schemas>

const inBodies: Record<string, GenericSchema> = {
  decide: api.decideBody,
  refund: api.refundBody,
  ...named,
}

const check = <T>(schema: Parameters<typeof checked<T>>[0], body: unknown) =>
  checked(schema, body, 'body', api.MAX_PROBLEMS)
const problemsOf = (schema: Parameters<typeof checked>[0], body: unknown) =>
  check(schema, body).problems ?? []
/** Where and what was expected, a line each. */
const told = (schema: Parameters<typeof checked>[0], body: unknown) =>
  problemsOf(schema, body).map(({ path, expected, got }) => `${path}: ${expected}, got ${got}`)

describe('a body that is right', () => {
  test.each([
    ['one policy', { policy: 'a', key: 'x' }],
    [
      'a key of several parts, one of them missing',
      { policy: 'a', key: ['x', 7, null], plan: 'pro' },
    ],
    ['a request', { request: { url: 'https://a.example/' }, cost: 0, mode: 'peek' }],
    ['a list', [{ policy: 'a', key: 1 }, { request: { url: 'http://a' } }]],
  ])('comes out as it came: %s', (_, body) => {
    expect(check(api.decideBody, body).output).toEqual(body)
  })

  test('has its duration in milliseconds', () => {
    expect(check(api.banBody, { key: 'x', for: '1h' }).output).toEqual({
      key: 'x',
      for: 3_600_000,
    })
  })
})

describe('a body that is wrong', () => {
  test('is told with the path of each fault, from the place in the list', () => {
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
    ['not an object', 7, ['body: an object, got 7']],
    ['an empty list', [], ['body: 1 to 100 asks, got []']],
    [
      'nothing at all',
      {},
      [
        'policy: the name of a policy; or request, and neither policy nor key, got nothing',
        'key: a text of up to 1024 characters, a number, or a list of them, got nothing',
      ],
    ],
    [
      'policy and request',
      { policy: 'a', key: 'x', request: { url: 'http://a' } },
      ['request: nothing beside policy: one of the two, got {"url":"http://a"}'],
    ],
    [
      'a key and a plan beside a request',
      { request: { url: 'http://a' }, key: 'x', plan: 'pro' },
      [
        'key: nothing beside request, which the key is read from, got "x"',
        'plan: nothing beside request, which the plan is read from, got "pro"',
      ],
    ],
    [
      'fields that every object has by birth',
      JSON.parse('{ "policy": "a", "key": "x", "__proto__": 1, "constructor": 2, "toString": 3 }'),
      ['__proto__', 'constructor', 'toString'].map(
        (name, i) => `${name}: one of the fields policy, key, plan, cost, mode, got ${i + 1}`,
      ),
    ],
  ])('says what was expected: %s', (_, body, expected) => {
    expect(told(api.decideBody, body)).toEqual(expected)
  })

  test('is told of in so many words and no more', () => {
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
        const start = performance.now()
        const problems = problemsOf(schema, body)
        expect(performance.now() - start).toBeLessThan(250)
        expect(problems.length).toBeGreaterThan(0)
        expect(problems.length).toBeLessThanOrEqual(api.MAX_PROBLEMS)
        expect(Math.max(...problems.map(({ got }) => got.length))).toBeLessThanOrEqual(61)
        expect(Math.max(...problems.map(({ path }) => path.length))).toBeLessThanOrEqual(100)
      }
    }
  })
})

test('nothing that JSON can hold makes a schema throw', () => {
  fc.assert(
    fc.property(fc.oneof(bodiesFor(), fc.jsonValue()), (body) => {
      for (const schema of Object.values(inBodies)) check(schema, body)
    }),
    { numRuns: 2000 },
  )
})

/** What JSON Schema has no words for, and so takes where we do not. */
const beyondJsonSchema = {
  url: ({ url }: { url?: unknown }) => typeof url === 'string' && !URL.canParse(url),
  ip: ({ ip }: { ip?: unknown }) => typeof ip === 'string' && !networkRange(ip),
  for: (body: { for?: unknown }) => typeof body.for === 'string' && !parseDuration(body.for),
  /** Lengths are UTF-16 code units here, and code points there. */
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
/** Header fields of these names are dropped unread: no object of ours is to have them. */
const isDropped = (body: unknown) =>
  /"(__proto__|constructor|prototype)":/.test(JSON.stringify(body))

test.each(Object.entries<GenericSchema>(named))(
  'the JSON Schema of %s takes what we take',
  (name, schema) => {
    const byTheirs = byJsonSchema(name as BodyName)
    const taken = [0, 0]
    fc.assert(
      fc.property(bodiesFor(name as BodyName), (body) => {
        const ours = check(schema, body).problems === undefined
        const theirs = byTheirs(body)
        taken[ours ? 1 : 0]! += 1
        if (ours !== theirs && !isDropped(body))
          expect([theirs, isBeyond(body)]).toEqual([true, true])
      }),
      { numRuns: 3000 },
    )
    // A generator that makes nothing right, or nothing wrong, would prove nothing.
    expect(Math.min(...taken)).toBeGreaterThan(30)
  },
)

test('of every description that is taken the runtime makes a request', () => {
  let made = 0
  fc.assert(
    fc.property(requests, (description) => {
      const { output } = check(api.requestDescription, description)
      if (!output) return
      const { url, method = 'GET', headers = {} } = output
      new Request(url, { method, headers })
      made += 1
    }),
    { numRuns: 3000 },
  )
  expect(made).toBeGreaterThan(100)
})
