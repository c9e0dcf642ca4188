import { parseRateLimit } from 'ratelimit-header-parser'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Decision, LimitState } from '../../../../src/core/base/decision.ts'
import type { HeaderSet } from '../../../../src/core/config/schema/config.ts'
import { allowed, refused, state } from '../../../support/decisions.ts'
import {
  day,
  every,
  fieldsOf,
  fieldValues,
  hour,
  namesOf,
} from '../../../support/ratelimit-fields.ts'

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
  const draft6 = ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']
  const names = new Map<HeaderSet, string[]>([
    ['draft-11', ['RateLimit-Policy', 'RateLimit']],
    ['draft-7', ['RateLimit-Policy', 'RateLimit']],
    ['draft-6', draft6],
    ['github', ['limit', 'remaining', 'used', 'reset', 'resource'].map((n) => `x-ratelimit-${n}`)],
  ])
  const prefixed = (prefix: string, reset: 'epoch' | 'delta' | 'iso') => {
    const set = { prefix, reset }
    names.set(
      set,
      ['Limit', 'Remaining', 'Reset'].map((name) => `${prefix}${name}`),
    )
    return set
  }
  const named = '"hour";q=1000;w=3600, "day";q=5000;w=86400'
  const policies = '1000;w=3600, 5000;w=86400'

  test.each<[HeaderSet, Decision, string[]]>([
    ['draft-11', allowed(hour, day, ghost), [named, '"day";r=2000;t=18']],
    ['draft-11', refused(7_201, empty, day), [named, '"hour";r=0;t=4']],
    ['draft-7', allowed(hour, day, ghost), [policies, 'limit=1000, remaining=500, reset=1801']],
    // The reset equals Retry-After.
    ['draft-7', refused(7_201, empty, day), [policies, 'limit=1000, remaining=0, reset=8']],
    ['draft-6', allowed(hour, day, ghost), [policies, '1000', '500', '1801']],
    ['draft-6', refused(7_201, empty, day), [policies, '1000', '0', '8']],
    // 12:00:00.4 plus 1,800,001 ms, rounded up
    ['github', allowed(hour, day, ghost), ['1000', '500', '500', '1795177801', 'hour']],
    ['github', refused(7_201, empty, day), ['1000', '0', '1000', '1795179001', 'hour']],
    [prefixed('X-RateLimit-', 'epoch'), allowed(hour, day), ['1000', '500', '1795177801']],
    [prefixed('X-RateLimit-', 'delta'), allowed(hour, day), ['1000', '500', '1801']],
    [prefixed('X-Rate-Limit-', 'iso'), allowed(hour, day), ['1000', '500', '2026-11-20T12:30:01Z']],
  ])(
    'The set %j reports a decision in exactly its own fields (case %#).',
    (set, decision, values) => {
      const fields = names.get(set)!.map((name, index) => [name, values[index]])
      expect(Object.entries(fieldsOf(set, decision))).toEqual(fields)
      expect(namesOf(set)).toEqual(names.get(set))
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

  test('The set github reports no reserved units as used, and 0 used if a burst leaves more than the limit.', () => {
    const reserving = fieldsOf('github', allowed(state({ remaining: 5, reserved: 3 })))
    expect(reserving).toMatchObject({ 'x-ratelimit-used': '2' })
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
})
