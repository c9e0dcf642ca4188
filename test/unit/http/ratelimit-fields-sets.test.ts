import { parseRateLimit } from 'ratelimit-header-parser'
import { parseDictionary, parseList } from 'structured-headers'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Decision, LimitState } from '../../../src/base/decision.ts'
import { type HeaderSet, namesOf } from '../../../src/config/schema/headers.ts'
import { fieldValues } from '../../../src/http/ratelimit-fields/sets.ts'
import { allowed, refused, state } from '../../support/decisions.ts'
import { day, every, fieldsOf, hour } from '../../support/ratelimit-fields.ts'

const now = Date.UTC(2026, 10, 20, 12, 0, 0, 400)
beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

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

describe('the fields of a set', () => {
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
      'draft-7', // The reset equals Retry-After.
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
        'x-ratelimit-reset': '1795177801', // 12:00:00.4 plus 1,800,001 ms, rounded up
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
  ])(
    'The set %j reports a decision in exactly its own fields (case %#).',
    (set, decision, fields) => {
      expect(fieldsOf(set, decision)).toEqual(fields)
      expect(Object.keys(fields)).toEqual(namesOf(set))
    },
  )

  test.each(every)('The set %j has no fields if no enforced policy applies.', (set) => {
    expect(fieldValues(set, allowed())).toBeUndefined()
    expect(fieldValues(set, allowed(ghost))).toBeUndefined()
    const degraded: Decision = { ...allowed(), reason: 'store-error', fallback: 'allow' }
    expect(fieldValues(set, degraded)).toBeUndefined()
  })

  test('A set without policy names reports the policy with the fewest remaining units; among equals, the one that resets last.', () => {
    const few = state({ policy: 'few', remaining: 3 })
    const fewer = state({ policy: 'large', limit: 1_000_000, remaining: 2, resetAfterMs: 1 })
    const late = { ...fewer, policy: 'late', resetAfterMs: 2 }
    const name = (...limits: LimitState[]) =>
      fieldsOf('github', allowed(...limits))['x-ratelimit-resource']
    expect(name(few, fewer)).toBe('large')
    expect(name(fewer, late)).toBe('late')
    expect(name(late, fewer)).toBe('late')
    expect(fieldsOf('draft-11', allowed(few, fewer)).RateLimit).toContain('"large"')
  })

  test('The sets draft-6 and draft-7 list each quota once, with its longest window, and omit windows that are not whole seconds.', () => {
    const minute = state()
    const tenHour = state({ policy: 'b', windowMs: 3_600_000 })
    const odd = state({ policy: 'c', limit: 11, windowMs: 1_500 })
    const policies = (...limits: LimitState[]) =>
      fieldsOf('draft-7', allowed(...limits))['RateLimit-Policy']
    expect(policies(minute, tenHour, odd)).toBe('10;w=3600')
    expect(policies(tenHour, minute)).toBe('10;w=3600')
    expect(policies(minute, state({ policy: 'same' }))).toBe('10;w=60')
    expect(policies(odd)).toBeUndefined()
    expect(fieldsOf('draft-7', allowed(odd)).RateLimit).toBe('limit=11, remaining=9, reset=60')
  })

  test('The set github reports 0 used if a burst leaves more than the limit.', () => {
    const fields = fieldsOf('github', allowed(state({ remaining: 15 })))
    expect(fields).toMatchObject({ 'x-ratelimit-remaining': '15', 'x-ratelimit-used': '0' })
  })

  test('The reset is the end of the window if a request costs more than the quota.', () => {
    const never = state({ allowed: false, cost: 11, retryAfterMs: null })
    expect(fieldsOf('draft-7', refused(null, never)).RateLimit).toContain('reset=60')
  })

  test('A reset is never earlier than Retry-After.', () => {
    const odd = state({ allowed: false, remaining: 0, retryAfterMs: 9_000, resetAfterMs: 1_000 })
    for (const set of every.slice(1)) {
      const { reset } = readBack(set, refused(9_000, odd))
      expect(reset, JSON.stringify(set)).toBeGreaterThanOrEqual(9_000)
    }
  })
})

/** The fields as an independent parser reads them; `reset` in ms from now. */
function readBack(set: HeaderSet, decision: Decision) {
  const resets = { epoch: 'unix', delta: 'seconds', iso: 'date' } as const
  const reset = typeof set === 'object' ? resets[set.reset] : set === 'github' ? 'unix' : 'seconds'
  const read = parseRateLimit(new Headers(fieldsOf(set, decision)), { reset })!
  return { ...read, reset: read.reset!.getTime() - now }
}

describe('an independent parser', () => {
  test.each(every.slice(1))('An independent parser reads the set %j.', (set) => {
    const absolute = set === 'github' || (typeof set === 'object' && set.reset !== 'delta')
    expect(readBack(set, allowed(hour, day))).toEqual({
      limit: 1000,
      remaining: 500,
      used: 500,
      // 1,800,001 ms rounded up, as a duration or as an absolute time.
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
  ] as const)('An independent parser reads the policies of the set %s.', (set, policies) => {
    const list = parseList(fieldsOf(set, allowed(hour, day))['RateLimit-Policy']!)
    expect(list.map(([item, parameters]) => [item, Object.fromEntries(parameters)])).toEqual(
      policies,
    )
  })

  test('An independent parser reads the state of the set draft-11.', () => {
    const [[item, parameters]] = parseList(fieldsOf('draft-11', allowed(hour, day)).RateLimit!) as [
      [string, Map<string, number>],
    ]
    expect([item, Object.fromEntries(parameters)]).toEqual(['day', { r: 2000, t: 18 }])
  })

  test('An independent parser reads the state of the set draft-7.', () => {
    const members = parseDictionary(fieldsOf('draft-7', allowed(hour, day)).RateLimit!)
    expect([...members].map(([key, [value]]) => [key, value])).toEqual([
      ['limit', 1000],
      ['remaining', 500],
      ['reset', 1801],
    ])
  })
})
