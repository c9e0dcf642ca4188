/** Waits in refusals that differ between clients. */
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Decision, LimitState } from '../../../../src/core/base/decision.ts'
import { jitter } from '../../../../src/features/jitter/index.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { useDatabase } from '../../../support/database.ts'
import { property } from '../../../support/law.ts'

const database = useDatabase()

const told = (decision: Decision, share: `${number}%` = '10%') =>
  jitter(share).compile({} as never).told!(decision)

/** Makes `Math.random` return a number for one test. */
function draw(number: number) {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(number)
  onTestFinished(() => spy.mockRestore())
}

const wait = fc.integer({ min: 0, max: 2 ** 40 })
const limit = fc
  .record({
    retryAfterMs: fc.option(wait),
    nextAfterMs: wait,
    resetAfterMs: wait,
    bannedForMs: fc.option(fc.integer({ min: 1, max: 2 ** 40 }), { nil: undefined }),
  })
  .map((waits) => ({ policy: 'a', mode: 'enforce', limit: 1, ...waits }) as LimitState)
const decision = fc
  .record({ retryAfterMs: fc.option(wait), limits: fc.array(limit, { maxLength: 3 }) })
  .map((one) => ({ allowed: false, reason: 'limited', ...one }) as Decision)

property(
  'No wait is shorter than the exact one, none is longer by more than the share, and their order stays the same.',
  fc.tuple(decision, fc.integer({ min: 1, max: 100 })),
  async ([exact, percent]) => {
    const longer = told(exact, `${percent}%`)
    const waitsOf = ({ retryAfterMs, limits }: Decision) => [
      retryAfterMs,
      ...limits.flatMap((one) => [
        one.retryAfterMs,
        one.nextAfterMs,
        one.resetAfterMs,
        one.bannedForMs,
      ]),
    ]
    const pairs = waitsOf(exact).map((ms, index) => [ms, waitsOf(longer)[index]] as const)
    for (const [before, after] of pairs) {
      if (typeof before !== 'number') expect(after).toBe(before)
      else {
        expect(after).toBeGreaterThanOrEqual(before)
        expect(after).toBeLessThanOrEqual(Math.ceil(before * (1 + percent / 100)))
      }
    }
    const numbers = pairs.filter((pair): pair is [number, number] => typeof pair[0] === 'number')
    const sorted = numbers.toSorted(([one], [other]) => one - other).map(([, after]) => after)
    expect(sorted).toEqual(sorted.toSorted((one, other) => one - other))
  },
)

test('Refusals of the same moment have different waits.', () => {
  const exact = { allowed: false, reason: 'limited', retryAfterMs: 60_000, limits: [] } as Decision
  const waits = new Set(Array.from({ length: 50 }, () => told(exact).retryAfterMs))
  expect(waits.size).toBeGreaterThan(40)
})

let namespaces = 0
const options = (use: object[]) => ({
  namespace: `jitter-${++namespaces}`,
  deadline: '10s' as const,
  clientAddress: () => '192.0.2.1',
  policies: [
    { name: 'per-ip', algorithm: 'fixed-window' as const, limit: 1, window: '1h' as const },
  ],
  use: use as never[],
})

test('Retry-After, the rate limit fields and the body of a refusal have the same longer wait; the decision is exact.', async () => {
  draw(0.5)
  const sluice = createSluice(options([jitter('100%')]))
  const check = () => sluice.check(new Request('https://a.test/'), { env: database.env })
  const first = await check()
  expect(Number(/t=(\d+)/.exec(first.headers.get('ratelimit')!)![1])).toBeLessThanOrEqual(3600)
  const { response, decision } = await check()
  const body = (await response!.json()) as { retryAfterMs: number }
  expect(decision.retryAfterMs).toBeLessThanOrEqual(3_600_000)
  expect(body.retryAfterMs).toBe(Math.ceil(decision.retryAfterMs! * 1.5))
  const seconds = Math.ceil(body.retryAfterMs / 1000)
  expect(Number(response!.headers.get('retry-after'))).toBe(seconds)
  expect(response!.headers.get('ratelimit')).toBe(`"per-ip";r=0;t=${seconds}`)
})

test('A refusal of forward-auth has a longer wait too.', async () => {
  draw(1)
  const gateway = createGateway(options([jitter('100%')]))
  const auth = () =>
    gateway.request(
      '/_sluice/v1/auth',
      {
        headers: {
          'sluice-token': 'a-token-of-a-proxy',
          'x-forwarded-method': 'GET',
          'x-forwarded-proto': 'https',
          'x-forwarded-host': 'a.test',
          'x-forwarded-uri': '/',
          'x-forwarded-for': '192.0.2.1',
        },
      },
      { ...database.env, SLUICE_API_TOKEN: 'a-token-of-a-proxy' },
      { waitUntil: () => {}, passThroughOnException: () => {}, props: {} },
    )
  expect((await auth()).status).toBe(200)
  const refused = await auth()
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(7000)
})

test.each(['0%', '101%', '10', '1.5%', '', 10])('The share %j is refused.', (share) => {
  expect(() => jitter(share as never)).toThrow(
    'jitter: expected a part of the wait like "10%", from "1%" to "100%"',
  )
})
