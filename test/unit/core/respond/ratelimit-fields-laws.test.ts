import fc from 'fast-check'
import { parseDictionary, parseItem, parseList } from 'structured-headers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LimitState } from '../../../../src/core/base/decision.ts'
import type { HeaderSet } from '../../../../src/core/config/schema/config.ts'
import { withDecisionFields } from '../../../../src/core/respond/response.ts'
import { isLong } from '../../../support/long.ts'
import { every, fieldsOf, fieldValues, namesOf, parsed } from '../../../support/ratelimit-fields.ts'

const now = Date.UTC(2026, 10, 20, 12, 0, 0, 400)
beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const natural = fc.oneof(fc.nat(20), fc.nat(2 ** 31 - 1), fc.maxSafeNat())
const limits = fc.array(
  fc.record({
    policy: fc.constantFrom('a', 'b', 'c'),
    mode: fc.constantFrom('enforce', 'enforce', 'shadow'),
    allowed: fc.boolean(),
    limit: natural.map((n) => n + 1),
    windowMs: fc
      .oneof(
        natural,
        fc.nat(9000).map((n) => n * 1000),
      )
      .map((n) => n + 1),
    cost: natural,
    remaining: natural,
    retryAfterMs: fc.option(natural),
    resetAfterMs: natural,
    nextAfterMs: natural,
    unit: fc.constantFrom(undefined, undefined, 'concurrent-requests'),
    bannedForMs: fc.option(natural, { nil: undefined }),
    reserved: fc.nat(),
    overriddenForMs: natural,
    decidedAt: natural,
  } satisfies Record<keyof LimitState, unknown>) as fc.Arbitrary<LimitState>,
  { maxLength: 4 },
)
const decisions = fc.record({
  allowed: fc.boolean(),
  reason: fc.constant('limited' as const),
  retryAfterMs: fc.option(natural),
  limits,
})
const setLists = fc.constantFrom<HeaderSet[]>(
  ...every.map((set) => [set]),
  ['draft-11', 'github'],
  ['draft-7', { prefix: 'RateLimit-', reset: 'epoch' }],
  ['draft-6', { prefix: 'X-RateLimit-', reset: 'iso' }],
)

const anyText = fc
  .array(fc.integer({ min: 1, max: 255 }).filter((code) => code !== 10 && code !== 13))
  .map((codes) => String.fromCharCode(...codes))
const nearText = fc
  .array(fc.constantFrom('"', 'a', 'r', '=', ';', ',', ' ', '1', '-', 'remaining', '\\', ':', '.'))
  .map((parts) => parts.join(''))
const policyList = fc
  .array(
    fc
      .tuple(fc.constantFrom('"a"', '"z"', '"\\""'), natural, fc.constantFrom('', ';t=1', ';x=?1'))
      .map(([name, r, rest]) => `${name};r=${Math.min(r, 10 ** 15 - 1)}${rest}`),
    { minLength: 1, maxLength: 3 },
  )
  .map((items) => items.join(', '))
const dictionaryText = natural.map(
  (n) => `limit=10, remaining=${Math.min(n, 10 ** 15 - 1)}, reset=5`,
)
const numberText = fc.oneof(
  natural.map(String),
  fc.array(natural, { minLength: 2, maxLength: 3 }).map((numbers) => numbers.join(', ')),
)
const fieldText = fc.oneof(policyList, dictionaryText, numberText, nearText, anyText)
const originFields = fc.dictionary(
  fc.constantFrom(...new Set(every.flatMap(namesOf).map((name) => name.toLowerCase()))),
  fieldText,
)

const attempt = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The smallest remaining units that a client can read in the fields of any draft (`drafts`), and in the X- fields (`x`). */
function clientReads(headers: Headers) {
  const text = (name: string) => headers.get(name) ?? ''
  const list = attempt(() => parseList(text('ratelimit'))) ?? []
  const strings = list.every(([item]) => typeof item === 'string')
  const items = strings ? list.map(([, parameters]) => parameters.get('r')) : []
  const member = attempt(() => parseDictionary(text('ratelimit')).get('remaining')?.[0])
  const numbers = (name: string) => {
    const items = (attempt(() => parseList(text(name))) ?? []).map(([item]) => item)
    return items.every(Number.isInteger) ? items : []
  }
  const least = (values: unknown[]) =>
    Math.min(...values.filter((value): value is number => Number.isInteger(value)))
  return {
    drafts: least([...items, member, ...numbers('ratelimit-remaining')]),
    x: least(numbers('x-ratelimit-remaining')),
  }
}

test('Merged fields are legal and never less strict than the fields of the origin; all other fields stay.', () => {
  fc.assert(
    fc.property(decisions, setLists, originFields, (decision, headers, fields) => {
      const before = new Headers({ ...fields, 'Retry-After': 'soon', 'X-Other': '1' })
      const response = new Response('x', { headers: before })
      const after = withDecisionFields(response, decision, {
        headers: parsed(headers),
      }).headers
      const origin = clientReads(before)
      const read = clientReads(after)
      expect(read.drafts).toBeLessThanOrEqual(origin.drafts)
      expect(read.x).toBeLessThanOrEqual(origin.x)
      for (const set of headers) {
        const { remaining = Number.POSITIVE_INFINITY } = fieldValues(set, decision) ?? {}
        const isX = namesOf(set).some((name) => /^x-/i.test(name))
        expect(isX ? read.x : read.drafts).toBeLessThanOrEqual(remaining)
      }
      const companions = headers.some((set) => typeof set === 'object') ? /-(used|resource)$/ : /^$/
      for (const name of before.keys()) {
        if (!companions.test(name)) expect(after.has(name), name).toBe(true)
      }
      expect([after.get('retry-after'), after.get('x-other')]).toEqual(['soon', '1'])
      for (const [name, value] of after) {
        if (before.get(name) !== value) expect(value).toMatch(/^[\x20-\x7e]+$/)
      }
    }),
    { numRuns: isLong ? 1000 : 300 },
  )
})

test('A parser of Structured Fields accepts every set for any decision.', () => {
  fc.assert(
    fc.property(decisions, fc.constantFrom(...every), (decision, set) => {
      for (const [name, value] of Object.entries(fieldsOf(set, decision))) {
        if (name === 'RateLimit-Policy') parseList(value)
        else if (name === 'RateLimit') set === 'draft-7' ? parseDictionary(value) : parseList(value)
        else if (/-Reset$/.test(name) && value.includes('T'))
          expect(Date.parse(value)).not.toBeNaN()
        else if (name !== 'x-ratelimit-resource') expect(parseItem(value)[0]).toBeTypeOf('number')
      }
    }),
    { numRuns: 300 },
  )
})
