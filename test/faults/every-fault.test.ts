import { watchStall } from 'sluice-bench'
import type { FaultText } from 'sluice-fault-proxy'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { StoreErrorCode } from '../../src/base/errors.ts'
import type { PolicyOptions } from '../../src/config/options.ts'
import { type Answer, type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

/** Each fault, and the code with which the log reports it. */
const faults: [FaultText, StoreErrorCode][] = [
  ['delay=60000', 'timeout'],
  ['hang', 'timeout'],
  ['late=60000', 'timeout'],
  ['lose', 'timeout'],
  ['stall-body', 'timeout'],
  ['drip=200', 'timeout'],
  ['refuse', 'unreachable'],
  ['reset', 'unreachable'],
  ['reset-after', 'unreachable'],
  ['reset-body', 'unreachable'],
  ['truncated', 'bad-reply'],
  ['wrong-types=text', 'bad-reply'],
  ['wrong-types=fraction', 'bad-reply'],
  ['wrong-types=null', 'bad-reply'],
  ['wrong-shape', 'bad-reply'],
  ['html=502', 'bad-reply'],
  ['html=200', 'bad-reply'],
  ['garbage', 'bad-reply'],
  ['empty', 'bad-reply'],
  ['json={}', 'bad-reply'],
  ['json=null', 'bad-reply'],
  ['json={"result":null}', 'bad-reply'],
  ['status=429', 'redis-error'],
  ['status=500', 'redis-error'],
  ['status=502', 'redis-error'],
  ['status=503', 'redis-error'],
  ['redis-error', 'redis-error'],
  ['parrot', 'redis-error'],
  ['unauthorized', 'unauthorized'],
  ['no-permission', 'unauthorized'],
  ['over-quota', 'over-quota'],
  ['daily-quota', 'over-quota'],
  ['suspended', 'over-quota'],
  ['database-full', 'database-full'],
]

const policies = (['allow', 'deny', 'local'] as const).map(
  (onStoreError): PolicyOptions => ({
    name: onStoreError,
    limit: 1000,
    window: '1d',
    localShare: 0.002, // two requests
    onStoreError,
    match: { path: `/${onStoreError}` },
  }),
)
const paths = ['/allow', '/deny', '/local', '/local', '/local']
const total = (counts: Record<string, number>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

describe('faults of the store', () => {
  test.each(faults)(
    'If the store fails with %s (%s), each request gets its fallback in time, and its call is made once.',
    async (fault, code) => {
      // Long for other faults, so that a busy machine causes no timeout.
      const deadline = code === 'timeout' ? 300 : 5000
      const worker = await stack.renew({ policies, deadline, degradedHeader: true })
      const stall = watchStall(`${worker.url}/free`)
      const all = () => Promise.all(paths.map((path) => stack.get(path)))
      const usual = await vi.waitFor(decidedByRedis(all), { timeout: 10_000, interval: 100 })

      const before = stack.faults.counts()
      await stack.faults.set(fault)
      const start = performance.now()
      const answers = await all()
      const end = performance.now()
      await stack.faults.set(null)
      const after = stack.faults.counts()

      const [allow, deny, ...local] = answers as [Answer, Answer, ...Answer[]]
      expect([allow.status, allow.passed, limitFields(allow)]).toEqual([200, true, ['allow']])
      expect([deny.status, limitFields(deny)]).toEqual([503, ['deny']])
      expect(JSON.parse(deny.body).type).toMatch(/#temporary-reduced-capacity$/)
      expect(local.map(({ status }) => status).toSorted()).toEqual([200, 200, 429])
      expect(local.map(limitFields)).toEqual([['local'], ['local'], ['local']])

      const slowest = Math.max(...answers.map(({ ms }) => ms))
      const stalledMs = await stall.between(start, end)
      await stall.stop()
      // A timer that fires late waits as long again.
      expect(slowest - usual - 2 * stalledMs).toBeLessThan(deadline + 20)

      expect((await stack.logged('store-error')).map((line) => line.code)).toEqual([code])
      const calls = total(after.arrived) - total(before.arrived)
      if (fault === 'refuse') expect(calls).toBe(0)
      else expect(paths.map((_, index) => index + 1)).toContain(calls) // concurrent requests may be one batch
      expect(total(after.delivered) - total(before.delivered)).toBeLessThanOrEqual(calls)
    },
  )
})

/** All header fields about limits. A fallback has no numbers, so there is only `Sluice-Degraded`. */
const limitFields = ({ headers }: Answer) =>
  [...headers]
    .filter(([name]) => /^(x-)?ratelimit|^sluice-/.test(name))
    .map(([name, value]) => (name === 'sluice-degraded' ? value : `${name}: ${value}`))

/** Sends requests, which Redis must decide. Returns the time of the slowest one in ms. */
function decidedByRedis(all: () => Promise<Answer[]>): () => Promise<number> {
  return async () => {
    const answers = await all()
    expect(answers.every(({ headers }) => headers.has('ratelimit'))).toBe(true)
    return Math.max(...answers.map(({ ms }) => ms))
  }
}

testNoLeaks(() => stack)
