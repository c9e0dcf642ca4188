import fc from 'fast-check'
import { parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import type { Decision, LimitState } from '../../../../src/core/base/decision.ts'
import { pageOf } from '../../../../src/core/respond/page.ts'
import { refusal, withDecisionFields } from '../../../../src/core/respond/response.ts'
import { allowed, refused, state } from '../../../support/decisions.ts'
import { useLightClasses } from '../../../support/node-servers.ts'

const draft11 = { headers: ['draft-11' as const] }

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

describe('the RateLimit fields of a response', () => {
  test('The RateLimit fields round seconds up, and omit a window that is not whole seconds.', () => {
    expect(parsed(allowed(state({ windowMs: 1500, nextAfterMs: 1001 })))).toEqual({
      'RateLimit-Policy': [['a', { q: 10 }]],
      RateLimit: [['a', { r: 9, t: 2 }]],
    })
  })

  test('On a refusal, the RateLimit fields report the policy that refuses longest, and t is at most Retry-After.', () => {
    const refusing = (retryAfterMs: number, nextAfterMs: number, change: Partial<LimitState>) =>
      state({ allowed: false, retryAfterMs, nextAfterMs, ...change })
    const a = refusing(2500, 9000, { remaining: 3, cost: 5 })
    const b = refusing(7500, 7500, { policy: 'b', remaining: 0 })
    const c = state({ policy: 'c', remaining: 0 })
    expect(parsed(refused(7500, c, a, b)).RateLimit).toEqual([['b', { r: 0, t: 8 }]])
    expect(parsed(refused(2500, c, a)).RateLimit).toEqual([['a', { r: 3, t: 3 }]])
  })

  test('The RateLimit fields contain no integer above the maximum of Structured Fields.', () => {
    expect(parsed(allowed(state({ limit: 2 ** 51, windowMs: 1000 })))['RateLimit-Policy']).toEqual([
      ['a', { q: 999_999_999_999_999, w: 1 }],
    ])
  })

  test('The RateLimit fields are set on the response itself, or on a copy if it is immutable.', () => {
    const mutable = new Response('x')
    expect(withDecisionFields(mutable, allowed(state()), draft11)).toBe(mutable)
    const immutable = Response.redirect('https://www.example.com/')
    const copy = withDecisionFields(immutable, allowed(state()), draft11)
    expect(copy.headers.has('RateLimit')).toBe(true)
    expect(copy.headers.get('Location')).toBe('https://www.example.com/')
    expect(copy.status).toBe(302)
  })
})

describe('the response to a refused request', () => {
  test('A refusal is a 429 problem with Retry-After rounded up to seconds and retryAfterMs exact.', async () => {
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
      detail: 'Try again in 3 seconds.',
      retryAfterMs: 2001,
      'violated-policies': ['a'],
    })
  })

  test.each([
    [1, '1 second'],
    [1_000, '1 second'],
    [1_001, '2 seconds'],
    [120_000, '120 seconds'],
    [120_001, '3 minutes'],
    [2_569_925, '43 minutes'],
    [7_200_001, '3 hours'],
    [172_800_001, '3 days'],
  ])('A wait of %d ms is told to people as %s, never too short.', async (ms, words) => {
    const response = refused(ms, state({ allowed: false, retryAfterMs: ms, remaining: 0 }))
    expect(await refusal(response).json()).toMatchObject({
      detail: `Try again in ${words}.`,
      retryAfterMs: ms,
    })
  })

  test('The document is JSON, whatever the names of the policies are.', async () => {
    const unit = fc.constantFrom('a', '"', '\\', '\n', 'é')
    const named = fc.record({ policy: fc.string({ unit }), wait: fc.nat() })
    await fc.assert(
      fc.asyncProperty(fc.array(named, { minLength: 1 }), fc.boolean(), async (all, isBan) => {
        const limits = all.map(({ policy, wait }) =>
          state({ policy, allowed: false, ...(isBan && { bannedForMs: wait }) }),
        )
        const decision = refused(all[0]!.wait, ...limits)
        const text = await refusal(isBan ? { ...decision, reason: 'banned' } : decision).text()
        const policies = JSON.stringify(all.map(({ policy }) => policy))
        expect(text.slice(text.indexOf('"retryAfterMs"'))).toBe(
          `"retryAfterMs":${all[0]!.wait},"violated-policies":${policies}}`,
        )
        expect(JSON.parse(text)).toMatchObject({ status: 429, title: expect.any(String) })
      }),
    )
  })

  test('A refusal of a cost above the quota says so and has no Retry-After.', async () => {
    const response = refusal(refused(null, state({ allowed: false, cost: 11, retryAfterMs: null })))
    expect(response.status).toBe(429)
    expect(response.headers.has('Retry-After')).toBe(false)
    expect(await response.json()).toMatchObject({
      retryAfterMs: null,
      detail: expect.stringContaining('more than the quota can ever hold'),
    })
  })

  test('A refusal before any limit has answered gives no time, and speaks of no cost.', async () => {
    expect(await refusal(refused(null)).json()).toMatchObject({
      detail: 'Too many requests are waiting.',
      retryAfterMs: null,
    })
  })

  test('No text of a refusal has milliseconds, an unknown time, or the word "function".', async () => {
    const waits = fc.option(fc.integer({ min: 1, max: 2 ** 40 }), { nil: null })
    const reasons = fc.constantFrom('limited', 'banned', 'denied', 'shielded', 'store-error')
    const parts = fc.constantFrom('function', 'ip', 'api-key', 'header:x', 'jwt:sub')
    const lacks = fc.tuple(fc.constantFrom('missing', 'unreadable', 'unverified'), parts)
    await fc.assert(
      fc.asyncProperty(waits, reasons, lacks, async (wait, reason, [fault, part]) => {
        const retryAfterMs = reason === 'shielded' ? (wait ?? 1) : wait
        const limit = state({ allowed: false, retryAfterMs, bannedForMs: wait ?? 1 })
        const denied = { by: 'a', [fault]: part }
        const decision = { ...refused(retryAfterMs, limit), reason, denied } as Decision
        for (const response of [refusal(decision), await pageOf(refusal(decision))]) {
          const body = await response.text()
          const text = response.headers.get('Content-Type')!.startsWith('text/html')
            ? body.replace(/<script.*?<\/script>/, '')
            : JSON.parse(body).detail
          expect(text).not.toMatch(/\bms\b|null|undefined|NaN|function/)
        }
      }),
    )
  })

  describe('a refusal by a concurrency policy', () => {
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
      'Too many requests are in flight. Try again when one of them ends, or in 10 minutes.'

    test('A refusal by a concurrency policy reports only the latest time, and has neither Retry-After nor t.', async () => {
      const decision = refused(599_513, slots)
      const response = refusal(decision)
      expect(response.headers.has('Retry-After')).toBe(false)
      expect(await response.json()).toMatchObject({ detail: open, retryAfterMs: 599_513 })
      expect(parsed(decision)).toEqual({
        'RateLimit-Policy': [['slots', { q: 10, qu: 'concurrent-requests' }]],
        RateLimit: [['slots', { r: 0 }]],
      })
    })

    test('A refusal by a concurrency policy and a window has the Retry-After of the window.', async () => {
      const response = refusal(refused(599_513, slots, window))
      expect(response.headers.get('Retry-After')).toBe('3')
      expect(await response.json()).toMatchObject({ detail: open })
      const later = { ...window, retryAfterMs: 3_600_000 }
      const other = refusal(refused(3_600_000, slots, later))
      expect(other.headers.get('Retry-After')).toBe('3600')
      expect(await other.json()).toMatchObject({ detail: 'Try again in 60 minutes.' })
    })

    test('A refusal ignores a concurrency policy that is in shadow or has a free slot.', async () => {
      for (const change of [{ mode: 'shadow' }, { allowed: true, retryAfterMs: 0 }] as const) {
        const response = refusal(refused(2001, window, { ...slots, ...change }))
        expect(response.headers.get('Retry-After')).toBe('3')
        expect(await response.json()).toMatchObject({ 'violated-policies': ['a'] })
      }
    })

    test('A refusal by a ban of a concurrency policy has the remaining ban as Retry-After.', () => {
      const banned = { ...slots, bannedForMs: 30_000 }
      const response = refusal({ ...refused(599_513, banned), reason: 'banned' })
      expect(response.headers.get('Retry-After')).toBe('30')
    })

    test('A refusal of a cost above the number of slots has no Retry-After.', async () => {
      const response = refusal(refused(null, { ...slots, retryAfterMs: null }))
      expect(response.headers.has('Retry-After')).toBe(false)
      expect(await response.json()).toMatchObject({ detail: expect.stringContaining('costs more') })
    })
  })

  test("A refusal by the isolate's share of a limit names no violated policies.", async () => {
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

  test('A refusal by onStoreError "deny" is a 503 without RateLimit fields and Retry-After.', async () => {
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
    [{ by: 'per-key', missing: 'function' }, 'The request has no client key.'],
    [
      { by: 'a', unreadable: 'function' },
      'The request has no single readable value of its client key.',
    ],
    [
      { by: 'a', unreadable: 'cookie:sid' },
      'The request has no single readable value of cookie:sid.',
    ],
    [{ by: 'a', unverified: 'api-key' }, 'The API key is not known.'],
    [{ by: 'a', unverified: 'jwt:sub' }, 'The token could not be verified.'],
  ])(
    'A request denied by %j gets a 403 that names neither the list nor the policy.',
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

describe.each([
  ['of the runtime', () => {}],
  ['of @hono/node-server', useLightClasses],
])('the fields of a refusal, with the class Response %s', (_name, useClass) => {
  useClass()
  const fields = fc.dictionary(
    fc.constantFrom('RateLimit', 'X-A', 'X-B'),
    fc.stringMatching(/^[a-c]{1,2}$/),
  )

  test('Each refusal has exactly its own, whatever an app has done with the fields of others.', () => {
    const waits = fc.constantFrom(null, 1, 1_000, 1_001)
    const given = fc.array(fc.tuple(waits, fields), { maxLength: 8 })
    fc.assert(
      fc.property(given, (list) => {
        for (const [wait, own] of list) {
          const { headers } = refusal(refused(wait, state({ allowed: false })), own)
          const seconds = wait === null ? {} : { 'Retry-After': wait > 1_000 ? '2' : '1' }
          const standard = {
            'Content-Type': 'application/problem+json',
            'Cache-Control': 'no-store',
          }
          expect([...headers]).toEqual([...new Headers({ ...standard, ...seconds, ...own })])
          headers.set('X-B', 'changed')
          headers.append('Set-Cookie', 'a=1')
          headers.delete('RateLimit')
        }
      }),
    )
  })
})
