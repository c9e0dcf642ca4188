import fc from 'fast-check'
import { parseRateLimit } from 'ratelimit-header-parser'
import { parseDictionary, parseItem, parseList } from 'structured-headers'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Decision, LimitState } from '../../../src/base/decision.ts'
import type { ConfigError } from '../../../src/base/errors.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { type HeaderSet, namesOf } from '../../../src/config/schema/headers.ts'
import { tell } from '../../../src/http/ratelimit-fields/sets.ts'
import { withDecisionFields } from '../../../src/http/response.ts'
import { allowed, refused, state } from '../../support/decisions.ts'

const now = Date.UTC(2026, 10, 20, 12, 0, 0, 400)
beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const every: HeaderSet[] = [
  'draft-11',
  'draft-7',
  'draft-6',
  'github',
  ...(['epoch', 'delta', 'iso'] as const).map((reset) => ({ prefix: 'X-RateLimit-', reset })),
]
const told = (set: HeaderSet, decision: Decision) =>
  Object.fromEntries(tell(set, decision)?.fields ?? [])

const hour = state({
  policy: 'hour',
  limit: 1000,
  windowMs: 3_600_000,
  remaining: 500,
  resetAfterMs: 1_800_001,
  nextAfterMs: 3_600,
})
const day = state({
  policy: 'day',
  limit: 5000,
  windowMs: 86_400_000,
  remaining: 2000,
  resetAfterMs: 51_840_000,
  nextAfterMs: 17_280,
})
const ghost = state({ policy: 'ghost', mode: 'shadow', limit: 1, remaining: 0 })
const empty = state({
  policy: 'hour',
  allowed: false,
  limit: 1000,
  windowMs: 3_600_000,
  remaining: 0,
  retryAfterMs: 7_201,
  resetAfterMs: 3_000_000,
  nextAfterMs: 3_600,
})

describe('the fields of', () => {
  test.each<[HeaderSet, Decision, Record<string, string>]>([
    [
      'draft-11',
      allowed(hour, day, ghost),
      {
        'RateLimit-Policy': '"hour";q=1000;w=3600, "day";q=5000;w=86400',
        RateLimit: '"day";r=2000;t=18',
      },
    ],
    [
      'draft-11',
      refused(7_201, empty, day),
      {
        'RateLimit-Policy': '"hour";q=1000;w=3600, "day";q=5000;w=86400',
        RateLimit: '"hour";r=0;t=4',
      },
    ],
    [
      'draft-7',
      allowed(hour, day, ghost),
      {
        'RateLimit-Policy': '1000;w=3600, 5000;w=86400',
        RateLimit: 'limit=1000, remaining=500, reset=1801',
      },
    ],
    [
      'draft-7', // beside Retry-After: the same moment
      refused(7_201, empty, day),
      {
        'RateLimit-Policy': '1000;w=3600, 5000;w=86400',
        RateLimit: 'limit=1000, remaining=0, reset=8',
      },
    ],
    [
      'draft-6',
      allowed(hour, day, ghost),
      {
        'RateLimit-Policy': '1000;w=3600, 5000;w=86400',
        'RateLimit-Limit': '1000',
        'RateLimit-Remaining': '500',
        'RateLimit-Reset': '1801',
      },
    ],
    [
      'draft-6',
      refused(7_201, empty, day),
      {
        'RateLimit-Policy': '1000;w=3600, 5000;w=86400',
        'RateLimit-Limit': '1000',
        'RateLimit-Remaining': '0',
        'RateLimit-Reset': '8',
      },
    ],
    [
      'github',
      allowed(hour, day, ghost),
      {
        'x-ratelimit-limit': '1000',
        'x-ratelimit-remaining': '500',
        'x-ratelimit-used': '500',
        'x-ratelimit-reset': '1795177801', // 12:00:00.4 and 30 minutes: 12:30:00.401, up
        'x-ratelimit-resource': 'hour',
      },
    ],
    [
      'github',
      refused(7_201, empty, day),
      {
        'x-ratelimit-limit': '1000',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-used': '1000',
        'x-ratelimit-reset': '1795179001',
        'x-ratelimit-resource': 'hour',
      },
    ],
    [
      { prefix: 'X-RateLimit-', reset: 'epoch' },
      allowed(hour, day),
      {
        'X-RateLimit-Limit': '1000',
        'X-RateLimit-Remaining': '500',
        'X-RateLimit-Reset': '1795177801',
      },
    ],
    [
      { prefix: 'X-RateLimit-', reset: 'delta' },
      allowed(hour, day),
      {
        'X-RateLimit-Limit': '1000',
        'X-RateLimit-Remaining': '500',
        'X-RateLimit-Reset': '1801',
      },
    ],
    [
      { prefix: 'X-Rate-Limit-', reset: 'iso' },
      allowed(hour, day),
      {
        'X-Rate-Limit-Limit': '1000',
        'X-Rate-Limit-Remaining': '500',
        'X-Rate-Limit-Reset': '2026-11-20T12:30:01Z',
      },
    ],
  ])('%j', (set, decision, fields) => {
    expect(told(set, decision)).toEqual(fields)
    expect(Object.keys(fields)).toEqual(namesOf(set))
  })

  test.each(every)('%j are none where there is nothing to tell', (set) => {
    expect(tell(set, allowed())).toBeUndefined()
    expect(tell(set, allowed(ghost))).toBeUndefined()
    const away: Decision = { ...allowed(), reason: 'store-error', fallback: 'allow' }
    expect(tell(set, away)).toBeUndefined()
  })

  test('sets without names report the fewest left, and among equals those that come back last', () => {
    const few = state({ policy: 'few', remaining: 3 })
    const fewer = state({ policy: 'large', limit: 1_000_000, remaining: 2, resetAfterMs: 1 })
    const late = { ...fewer, policy: 'late', resetAfterMs: 2 }
    const name = (...limits: LimitState[]) =>
      told('github', allowed(...limits))['x-ratelimit-resource']
    expect(name(few, fewer)).toBe('large')
    expect(name(fewer, late)).toBe('late')
    expect(name(late, fewer)).toBe('late')
    expect(told('draft-11', allowed(few, fewer)).RateLimit).toContain('"large"')
  })

  test('draft-6 and draft-7 list each quota once, by its longest window, and none without a whole window', () => {
    const minute = state()
    const tenHour = state({ policy: 'b', windowMs: 3_600_000 })
    const odd = state({ policy: 'c', limit: 11, windowMs: 1_500 })
    const policies = (...limits: LimitState[]) =>
      told('draft-7', allowed(...limits))['RateLimit-Policy']
    expect(policies(minute, tenHour, odd)).toBe('10;w=3600')
    expect(policies(tenHour, minute)).toBe('10;w=3600')
    expect(policies(minute, state({ policy: 'same' }))).toBe('10;w=60')
    expect(policies(odd)).toBeUndefined()
    expect(told('draft-7', allowed(odd)).RateLimit).toBe('limit=11, remaining=9, reset=60')
  })

  test('a burst may leave more than the limit: then nothing is used', () => {
    const fields = told('github', allowed(state({ remaining: 15 })))
    expect(fields).toMatchObject({ 'x-ratelimit-remaining': '15', 'x-ratelimit-used': '0' })
  })

  test('a cost that never fits has no Retry-After to agree with', () => {
    const never = state({ allowed: false, cost: 11, retryAfterMs: null })
    expect(told('draft-7', refused(null, never)).RateLimit).toContain('reset=60')
  })

  test('a reset is never before Retry-After', () => {
    const odd = state({ allowed: false, remaining: 0, retryAfterMs: 9_000, resetAfterMs: 1_000 })
    for (const set of every.slice(1)) {
      const { reset } = readBack(set, refused(9_000, odd))
      expect(reset, JSON.stringify(set)).toBeGreaterThanOrEqual(9_000)
    }
  })
})

/** What a parser that is not ours reads: milliseconds until the reset, counted from now. */
function readBack(set: HeaderSet, decision: Decision) {
  const resets = { epoch: 'unix', delta: 'seconds', iso: 'date' } as const
  const reset = typeof set === 'object' ? resets[set.reset] : set === 'github' ? 'unix' : 'seconds'
  const read = parseRateLimit(new Headers(told(set, decision)), { reset })!
  return { ...read, reset: read.reset!.getTime() - now }
}

describe('an independent parser reads', () => {
  test.each(every.slice(1))('%j', (set) => {
    const absolute = set === 'github' || (typeof set === 'object' && set.reset !== 'delta')
    expect(readBack(set, allowed(hour, day))).toEqual({
      limit: 1000,
      remaining: 500,
      used: 500,
      // 1,800,001 ms rounded up: from now, or as an instant.
      reset: absolute ? 1_800_600 : 1_801_000,
    })
  })

  test.each([
    [
      'draft-11',
      [
        ['hour', { q: 1000, w: 3600 }],
        ['day', { q: 5000, w: 86_400 }],
      ],
    ],
    [
      'draft-7',
      [
        [1000, { w: 3600 }],
        [5000, { w: 86_400 }],
      ],
    ],
    [
      'draft-6',
      [
        [1000, { w: 3600 }],
        [5000, { w: 86_400 }],
      ],
    ],
  ] as const)('%s: its policies', (set, policies) => {
    const list = parseList(told(set, allowed(hour, day))['RateLimit-Policy']!)
    expect(list.map(([item, parameters]) => [item, Object.fromEntries(parameters)])).toEqual(
      policies,
    )
  })

  test('draft-11: its state', () => {
    const [[item, parameters]] = parseList(told('draft-11', allowed(hour, day)).RateLimit!) as [
      [string, Map<string, number>],
    ]
    expect([item, Object.fromEntries(parameters)]).toEqual(['day', { r: 2000, t: 18 }])
  })

  test('draft-7: its state', () => {
    const members = parseDictionary(told('draft-7', allowed(hour, day)).RateLimit!)
    expect([...members].map(([key, [value]]) => [key, value])).toEqual([
      ['limit', 1000],
      ['remaining', 500],
      ['reset', 1801],
    ])
  })
})

/** The fields of a response of an origin after ours have been put into them. */
function merged(set: HeaderSet | HeaderSet[], origin: Record<string, string>, remaining = 9) {
  const decision = allowed(state({ remaining }))
  const headers = [set].flat()
  const response = new Response('x', { headers: new Headers(origin) })
  const result = withDecisionFields(response, decision, { headers, degradedHeader: false })
  return Object.fromEntries(result.headers)
}

describe('an origin’s fields', () => {
  const ours11 = { 'ratelimit-policy': '"a";q=10;w=60', ratelimit: '"a";r=9;t=6' }
  const ours7 = {
    'ratelimit-policy': '10;w=60',
    ratelimit: 'limit=10, remaining=9, reset=60',
  }
  const ours6 = {
    'ratelimit-policy': '10;w=60',
    'ratelimit-limit': '10',
    'ratelimit-remaining': '9',
    'ratelimit-reset': '60',
  }
  const oursX = {
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '9',
    'x-ratelimit-reset': '60',
  }
  const delta = { prefix: 'X-RateLimit-', reset: 'delta' } as const
  const joined = (policies: string, limit: string) => ({
    'ratelimit-policy': `${policies}, ${ours11['ratelimit-policy']}`,
    ratelimit: `${limit}, ${ours11.ratelimit}`,
  })

  test.each<[string, HeaderSet, Record<string, string>, Record<string, string> | 'theirs']>([
    // Lists of draft-11 stand together.
    ['none', 'draft-11', {}, ours11],
    [
      'a list',
      'draft-11',
      { 'ratelimit-policy': '"z";q=5;w=1', ratelimit: '"z";r=1;t=1' },
      joined('"z";q=5;w=1', '"z";r=1;t=1'),
    ],
    [
      'a list with parameters of every kind',
      'draft-11',
      {
        'ratelimit-policy':
          '"z\\"\\\\;q=1";q=5;qu="content-bytes";pk=:sdfjLJUOUH==:;d=@1;f=1.5;t=tok/n;b=?1;n;s=%"%c3%bc"',
        ratelimit: '"z";r=1,"y"; r=2\t,\t"x";r=3',
      },
      joined(
        '"z\\"\\\\;q=1";q=5;qu="content-bytes";pk=:sdfjLJUOUH==:;d=@1;f=1.5;t=tok/n;b=?1;n;s=%"%c3%bc"',
        '"z";r=1,"y"; r=2\t,\t"x";r=3',
      ),
    ],
    [
      'a list of policies only',
      'draft-11',
      { 'ratelimit-policy': '"z";q=5' },
      { ...ours11, 'ratelimit-policy': '"z";q=5, "a";q=10;w=60' },
    ],
    ['empty', 'draft-11', { 'ratelimit-policy': '', ratelimit: '' }, ours11],
    // Of one policy, the one with less.
    ['a policy of our name with less', 'draft-11', { ratelimit: '"a";r=8;t=1' }, 'theirs'],
    ['a policy of our name with as much', 'draft-11', { ratelimit: '"a";r=9;t=1' }, 'theirs'],
    ['a policy of our name with more', 'draft-11', { ratelimit: '"a";r=10;t=1' }, ours11],
    [
      'a policy of our name whose state is not told',
      'draft-11',
      { 'ratelimit-policy': '"a";q=1;w=1' },
      ours11,
    ],
    // Of another draft.
    [
      'draft-7 with less',
      'draft-11',
      { 'ratelimit-policy': '5;w=1', ratelimit: 'limit=5, remaining=0, reset=5' },
      'theirs',
    ],
    [
      'draft-7 with more',
      'draft-11',
      { 'ratelimit-policy': '50;w=1', ratelimit: 'limit=50, remaining=10, reset=5' },
      ours11,
    ],
    [
      'draft-6 with less',
      'draft-11',
      { 'ratelimit-policy': '5;w=1', 'ratelimit-limit': '5', 'ratelimit-remaining': '4' },
      'theirs',
    ],
    [
      'draft-6 with more, whose own fields stay',
      'draft-11',
      { 'ratelimit-policy': '50;w=1', 'ratelimit-remaining': '40' },
      { ...ours11, 'ratelimit-remaining': '40' },
    ],
    [
      'draft-3, which has no field in common',
      'draft-11',
      { 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' },
      { ...ours11, 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' },
    ],
    [
      'draft-3, which has no field in common',
      'draft-7',
      { 'ratelimit-remaining': '0' },
      { ...ours7, 'ratelimit-remaining': '0' },
    ],
    ['draft-11 with one number twice', 'draft-7', { ratelimit: '"z";r=1;r=10' }, ours7],
    ['draft-11 with less', 'draft-7', { ratelimit: '"z";r=50, "y";r=1' }, 'theirs'],
    ['draft-11 with more', 'draft-7', { ratelimit: '"z";r=50, "y";r=10' }, ours7],
    // One number a field.
    ['less', 'draft-7', { ratelimit: 'limit=5, remaining=8, reset=1' }, 'theirs'],
    [
      'less, and a policy',
      'draft-7',
      { ratelimit: 'remaining=3;x=";", limit=5', 'ratelimit-policy': '5;w=1' },
      'theirs',
    ],
    ['more', 'draft-7', { ratelimit: 'limit=50, remaining=48, reset=1' }, ours7],
    ['the same key twice', 'draft-7', { ratelimit: 'remaining=1, remaining=10' }, ours7],
    ['no number', 'draft-7', { ratelimit: 'limit=5, reset=1' }, ours7],
    ['less', 'draft-6', { 'ratelimit-remaining': '8' }, 'theirs'],
    [
      'more, whose other fields go',
      'draft-6',
      { 'ratelimit-limit': '500', 'ratelimit-remaining': '100', 'ratelimit-reset': '1' },
      ours6,
    ],
    [
      'less',
      'github',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1795177801' },
      'theirs',
    ],
    ['less', delta, { 'x-ratelimit-remaining': '8' }, 'theirs'],
    ['as much', delta, { 'x-ratelimit-remaining': '9' }, 'theirs'],
    ['a number with parameters', delta, { 'x-ratelimit-remaining': '8;w=60' }, 'theirs'],
    ['below zero', delta, { 'x-ratelimit-remaining': '-1' }, 'theirs'],
    [
      'more, whose used and resource would be wrong beside ours',
      delta,
      {
        'x-ratelimit-limit': '5000',
        'x-ratelimit-remaining': '4999',
        'x-ratelimit-used': '1',
        'x-ratelimit-reset': '1795177801',
        'x-ratelimit-resource': 'core',
      },
      oursX,
    ],
    ['two numbers, one of them less', delta, { 'x-ratelimit-remaining': '50, 8' }, 'theirs'],
    ['two numbers, none less', delta, { 'x-ratelimit-remaining': '50, 10' }, oursX],
    ['other prefixes', delta, { 'x-limit-remaining': '1' }, { ...oursX, 'x-limit-remaining': '1' }],
    // Nonsense counts as absent.
    ...[
      '',
      'soon',
      '1e1',
      '0x1',
      '1.5',
      '1 2',
      '1;',
      '1, soon',
      '\xfc',
      '9'.repeat(400),
      ',,;,',
      '"1"',
    ].map((value): [string, HeaderSet, Record<string, string>, Record<string, string>] => [
      `nonsense (${value.slice(0, 9)})`,
      delta,
      { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': value },
      oursX,
    ]),
    ...[
      'soon',
      '"z',
      '"z";r=1,',
      ',"z";r=1',
      '"z" "y"',
      '"z";R=1',
      '"z";r=1;',
      '("z");r=1',
      'z;r=1',
      '"\xfc";r=1',
      '"z\\n";r=1',
      '"z";r=:!:',
      '"z";r=1234567890123456',
      'remaining=1,',
      'Remaining=1',
      'remaining=1 limit=2',
    ].map((value): [string, HeaderSet, Record<string, string>, Record<string, string>] => [
      `nonsense (${value})`,
      'draft-11',
      { 'ratelimit-policy': '"z";q=1', ratelimit: value },
      ours11,
    ]),
  ])('%s, ours in %j', (_, set, origin, expected) => {
    const plain = { 'content-type': 'text/plain;charset=UTF-8', 'retry-after': '120' }
    expect(merged(set, { ...origin, ...plain })).toEqual({
      ...(expected === 'theirs' ? origin : expected),
      ...plain,
    })
  })

  test('are judged for each set by itself', () => {
    const origin = { ratelimit: '"z";r=100', 'x-ratelimit-remaining': '3' }
    expect(merged(['draft-11', delta], origin)).toMatchObject({
      ratelimit: '"z";r=100, "a";r=9;t=6',
      'x-ratelimit-remaining': '3',
    })
  })

  test('are left alone by "off"', () => {
    const response = new Response('x', { headers: { ratelimit: 'soon' } })
    const off = parseConfig({ policies: [], headers: 'off' })
    expect(withDecisionFields(response, allowed(state()), off)).toBe(response)
  })

  test.each([
    `"${'a'.repeat(100_000)}`,
    `"a"${';a=b'.repeat(25_000)}!`,
    '"a",'.repeat(25_000),
    ','.repeat(100_000),
    'a'.repeat(100_000),
    '1,'.repeat(50_000),
    `"a";r=${'1'.repeat(100_000)}`,
  ])('however long take no time', (value) => {
    const started = performance.now()
    for (const set of every) {
      merged(set, {
        ratelimit: value,
        'ratelimit-remaining': value,
        'x-ratelimit-remaining': value,
      })
    }
    expect(performance.now() - started).toBeLessThan(1000)
  })
})

describe('the sets of a configuration', () => {
  const parse = (headers: unknown) => parseConfig({ policies: [], headers }).headers
  const problem = (headers: unknown) => {
    try {
      parse(headers)
    } catch (error) {
      return (error as ConfigError).message
    }
  }

  test('are draft-11, one, several or none', () => {
    expect(parse(undefined)).toEqual(['draft-11'])
    expect(parse('github')).toEqual(['github'])
    expect(parse(['draft-7', { prefix: 'X-RateLimit-', reset: 'iso' }])).toHaveLength(2)
    expect([parse('off'), parse([])]).toEqual([[], []])
  })

  test.each([
    ['draft-12', /^headers: expected one of draft-11, draft-7, draft-6, github, an object/],
    [['draft-11', 'off'], /^headers\[1\]: expected one of .* or "off" alone, got "off"/],
    [{ prefix: 'X-', reset: 'soon' }, /^headers\.reset: expected one of epoch, delta, iso/],
    [{ prefix: 'X RateLimit' }, /headers\.prefix: expected the beginning of a field name/],
    [['draft-11', 'draft-7'], /^headers: expected sets that have no field in common/],
    [['draft-7', 'draft-6'], /no field in common/],
    [['github', { prefix: 'X-RateLimit-', reset: 'delta' }], /no field in common/],
    [['draft-6', { prefix: 'RateLimit-', reset: 'epoch' }], /no field in common/],
    [['github', 'github'], /no field in common/],
  ])('%j are refused', (headers, message) => {
    expect(problem(headers)).toMatch(message)
  })
})

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

const orNone = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** What a client that knows every draft, and takes the worst for true, reads as remaining: of the drafts' fields, and of the X- ones. */
function clientReads(headers: Headers) {
  const text = (name: string) => headers.get(name) ?? ''
  const list = orNone(() => parseList(text('ratelimit'))) ?? []
  const strings = list.every(([item]) => typeof item === 'string')
  const items = strings ? list.map(([, parameters]) => parameters.get('r')) : []
  const member = orNone(() => parseDictionary(text('ratelimit')).get('remaining')?.[0])
  const numbers = (name: string) => {
    const items = (orNone(() => parseList(text(name))) ?? []).map(([item]) => item)
    return items.every(Number.isInteger) ? items : []
  }
  const least = (values: unknown[]) =>
    Math.min(...values.filter((value): value is number => Number.isInteger(value)))
  return {
    drafts: least([...items, member, ...numbers('ratelimit-remaining')]),
    x: least(numbers('x-ratelimit-remaining')),
  }
}

test('whatever is decided and whatever the origin says, nothing is loosened, removed or illegal', () => {
  fc.assert(
    fc.property(decisions, setLists, originFields, (decision, headers, origin) => {
      const before = new Headers({ ...origin, 'Retry-After': 'soon', 'X-Other': '1' })
      const response = new Response('x', { headers: before })
      const after = withDecisionFields(response, decision, {
        headers,
        degradedHeader: false,
      }).headers
      const theirs = clientReads(before)
      const read = clientReads(after)
      expect(read.drafts).toBeLessThanOrEqual(theirs.drafts)
      expect(read.x).toBeLessThanOrEqual(theirs.x)
      for (const set of headers) {
        const { remaining = Number.POSITIVE_INFINITY } = tell(set, decision) ?? {}
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
    { numRuns: 3000 },
  )
})

test('whatever is decided, every set is legal to a parser of Structured Fields', () => {
  fc.assert(
    fc.property(decisions, fc.constantFrom(...every), (decision, set) => {
      for (const [name, value] of Object.entries(told(set, decision))) {
        if (name === 'RateLimit-Policy') parseList(value)
        else if (name === 'RateLimit') set === 'draft-7' ? parseDictionary(value) : parseList(value)
        else if (/-Reset$/.test(name) && value.includes('T'))
          expect(Date.parse(value)).not.toBeNaN()
        else if (name !== 'x-ratelimit-resource') expect(parseItem(value)[0]).toBeTypeOf('number')
      }
    }),
    { numRuns: 1000 },
  )
})
