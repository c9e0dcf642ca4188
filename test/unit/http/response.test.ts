import { parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import type { Decision } from '../../../src/base/decision.ts'
import type { HeaderSet } from '../../../src/config/schema/headers.ts'
import { refusal, withDecisionFields } from '../../../src/http/response.ts'
import { allowed, refused, state } from '../../support/decisions.ts'

const draft11: { headers: HeaderSet[]; degradedHeader: boolean } = {
  headers: ['draft-11'],
  degradedHeader: false,
}

/** The fields as an independent parser of Structured Fields reads them. */
function parsed(decision: Decision) {
  const { headers } = withDecisionFields(new Response('x'), decision, draft11)
  const fields = ['RateLimit-Policy', 'RateLimit'].filter((name) => headers.has(name))
  return Object.fromEntries(
    fields.map((name) => [
      name,
      parseList(headers.get(name)!).map(([item, parameters]) => [
        item,
        Object.fromEntries(parameters),
      ]),
    ]),
  )
}

describe('the RateLimit fields', () => {
  test('name every enforced policy and the state of the nearest to exhaustion', () => {
    const limits = [
      state(),
      state({ policy: 'b', limit: 1000, windowMs: 86_400_000, remaining: 500, nextAfterMs: 1 }),
      state({ policy: 'ghost', mode: 'shadow', remaining: 0 }),
    ]
    expect(parsed(allowed(...limits))).toEqual({
      'RateLimit-Policy': [
        ['a', { q: 10, w: 60 }],
        ['b', { q: 1000, w: 86_400 }],
      ],
      RateLimit: [['b', { r: 500, t: 1 }]],
    })
  })

  test('round seconds up, and leave out a window that is no whole number of them', () => {
    expect(parsed(allowed(state({ windowMs: 1500, nextAfterMs: 1001 })))).toEqual({
      'RateLimit-Policy': [['a', { q: 10 }]],
      RateLimit: [['a', { r: 9, t: 2 }]],
    })
  })

  test('on a refusal report the policy that refuses longest, with t never beyond Retry-After', () => {
    const a = state({
      allowed: false,
      remaining: 3,
      cost: 5,
      retryAfterMs: 2500,
      nextAfterMs: 9000,
    })
    const b = state({
      policy: 'b',
      allowed: false,
      remaining: 0,
      retryAfterMs: 7500,
      nextAfterMs: 7500,
    })
    const c = state({ policy: 'c', remaining: 0 })
    expect(parsed(refused(7500, c, a, b)).RateLimit).toEqual([['b', { r: 0, t: 8 }]])
    expect(parsed(refused(2500, c, a)).RateLimit).toEqual([['a', { r: 3, t: 3 }]])
  })

  test('hold no integer that a structured field cannot', () => {
    expect(parsed(allowed(state({ limit: 2 ** 51, windowMs: 1000 })))['RateLimit-Policy']).toEqual([
      ['a', { q: 999_999_999_999_999, w: 1 }],
    ])
  })

  test('are absent where there is nothing to tell', () => {
    expect(parsed({ ...allowed(), reason: 'store-error' })).toEqual({})
    expect(parsed(allowed(state({ mode: 'shadow' })))).toEqual({})
  })

  test('are added to what an origin says, never instead of it', () => {
    const response = new Response('x', {
      headers: { RateLimit: '"origin";r=1;t=1', 'X-Other': '1' },
    })
    const headers = withDecisionFields(response, allowed(state()), draft11).headers
    expect(parseList(headers.get('RateLimit')!).map(([name]) => name)).toEqual(['origin', 'a'])
    expect(headers.get('X-Other')).toBe('1')
  })
})

describe('Sluice-Degraded', () => {
  const decision: Decision = {
    allowed: true,
    reason: 'store-error',
    fallback: 'allow',
    retryAfterMs: 0,
    limits: [],
  }
  test('says who answered instead of the store, if that is switched on', () => {
    const field = (degradedHeader: boolean) =>
      withDecisionFields(new Response('x'), decision, { ...draft11, degradedHeader }).headers.get(
        'Sluice-Degraded',
      )
    expect(field(true)).toBe('allow')
    expect(field(false)).toBeNull()
  })
})

describe('a refusal', () => {
  test('is a 429 problem with Retry-After rounded up and the milliseconds exact', async () => {
    const response = refusal(
      refused(
        2001,
        state({ allowed: false, remaining: 0, retryAfterMs: 2001, nextAfterMs: 2001 }),
        state({ policy: 'b' }),
      ),
    )
    expect(response.status).toBe(429)
    expect(response.headers.get('Content-Type')).toBe('application/problem+json')
    expect(response.headers.get('Retry-After')).toBe('3')
    expect(response.headers.get('Cache-Control')).toBe('no-store')
    expect(await response.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota exceeded',
      status: 429,
      detail: 'The same request passes in 2001 ms.',
      retryAfterMs: 2001,
      'violated-policies': ['a'],
    })
  })

  test('of a cost that never fits says so and has no Retry-After', async () => {
    const response = refusal(refused(null, state({ allowed: false, cost: 11, retryAfterMs: null })))
    expect(response.status).toBe(429)
    expect(response.headers.has('Retry-After')).toBe(false)
    expect(await response.json()).toMatchObject({
      retryAfterMs: null,
      detail: expect.stringContaining('more than the quota can ever hold'),
    })
  })

  describe('of concurrent requests', () => {
    const slots = state({
      policy: 'slots',
      unit: 'concurrent-requests',
      allowed: false,
      remaining: 0,
      windowMs: 600_000,
      retryAfterMs: 599_513,
      resetAfterMs: 599_900,
      nextAfterMs: 599_513,
    })
    const window = state({ allowed: false, remaining: 0, retryAfterMs: 2001, nextAfterMs: 2001 })
    const open =
      'Too many requests are in flight: this one passes when one of them ends, at the latest in 599513 ms.'

    test('promises no time but the latest, and has neither Retry-After nor t', async () => {
      const decision = refused(599_513, slots)
      const response = refusal(decision)
      expect(response.headers.has('Retry-After')).toBe(false)
      expect(await response.json()).toMatchObject({ detail: open, retryAfterMs: 599_513 })
      expect(parsed(decision)).toEqual({
        'RateLimit-Policy': [['slots', { q: 10, qu: 'concurrent-requests' }]],
        RateLimit: [['slots', { r: 0 }]],
      })
    })

    test('and of a window too has the Retry-After of the window', async () => {
      const response = refusal(refused(599_513, slots, window))
      expect(response.headers.get('Retry-After')).toBe('3')
      expect(await response.json()).toMatchObject({ detail: open })
      const later = { ...window, retryAfterMs: 3_600_000 }
      const other = refusal(refused(3_600_000, slots, later))
      expect(other.headers.get('Retry-After')).toBe('3600')
      expect(await other.json()).toMatchObject({ detail: 'The same request passes in 3600000 ms.' })
    })

    test('and in shadow or with room says nothing of slots', () => {
      for (const change of [{ mode: 'shadow' }, { allowed: true, retryAfterMs: 0 }] as const) {
        const response = refusal(refused(2001, window, { ...slots, ...change }))
        expect(response.headers.get('Retry-After')).toBe('3')
      }
    })

    test('by a ban has the rest of the ban as Retry-After', () => {
      const banned = { ...slots, bannedForMs: 30_000 }
      const response = refusal({ ...refused(599_513, banned), reason: 'banned' })
      expect(response.headers.get('Retry-After')).toBe('30')
    })

    test('that cost more than there are slots has no Retry-After', async () => {
      const response = refusal(refused(null, { ...slots, retryAfterMs: null }))
      expect(response.headers.has('Retry-After')).toBe(false)
      expect(await response.json()).toMatchObject({ detail: expect.stringContaining('costs more') })
    })
  })

  test("by this isolate's share alone names no policy's numbers", async () => {
    const response = refusal({
      allowed: false,
      reason: 'store-error',
      fallback: 'local',
      retryAfterMs: 1500,
      limits: [],
    })
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2'])
    expect(await response.json()).not.toHaveProperty('violated-policies')
  })

  test('without a store is a 503 with no invented number', async () => {
    const response = refusal({
      allowed: false,
      reason: 'store-error',
      fallback: 'deny',
      retryAfterMs: null,
      limits: [],
    })
    expect(response.status).toBe(503)
    expect([...response.headers.keys()]).toEqual(['cache-control', 'content-type'])
    expect(await response.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Temporarily reduced capacity',
      status: 503,
      detail: 'The rate limit could not be checked.',
    })
  })

  test.each([
    [{ by: 'deny[0]' }, 'The request is on a deny list.'],
    [{ by: 'per-key', missing: 'header:x-api-key' }, 'The request lacks header:x-api-key.'],
    [
      { by: 'a', unreadable: 'cookie:sid' },
      'The request has no single readable value of cookie:sid.',
    ],
    [{ by: 'a', unverified: 'api-key' }, 'The API key is not known.'],
    [{ by: 'a', unverified: 'jwt:sub' }, 'The token could not be verified.'],
  ])(
    'of whom a list or a policy denies (%j) is a 403 that names neither',
    async (denied, detail) => {
      const response = refusal({
        allowed: false,
        reason: 'denied',
        denied,
        retryAfterMs: null,
        limits: [],
      })
      expect(response.status).toBe(403)
      expect(Object.fromEntries(response.headers)).toEqual({
        'cache-control': 'no-store',
        'content-type': 'application/problem+json',
      })
      expect(await response.json()).toEqual({
        type: 'about:blank',
        title: 'Forbidden',
        status: 403,
        detail,
      })
    },
  )
})
