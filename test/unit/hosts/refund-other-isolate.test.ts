/** Two isolates on one Redis: the delay until one of them sees refunds, resets and unbans of the other. */
import { expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

/** The maximum delay. docs/explanation/guarantees.md promises it. */
const LATEST_MS = 10_000

const config: ConfigOptions = {
  policies: [
    { name: 'hour', algorithm: 'fixed-window', limit: 10, window: '1h', key: 'header:x-key' },
    { name: 'banned', limit: 10, window: '1h', key: 'header:x-key', penalty: 'manual' },
  ],
}
const clock = new TestClock()
const gateway = useGateway({ config, clock })

function startIsolate() {
  const { decide, call, operate } = apiOf(gateway.start(config, { env: apiTokens }).fetch)
  return {
    /** Returns whether the request is allowed, and the number of calls to Redis. */
    async decide(policy: string, key: string, cost = 1) {
      const before = gateway.httpRequests()
      const { body } = await decide({ policy, key, cost })
      return [body.allowed, gateway.httpRequests() - before]
    },
    refund: (key: string) => call('/refund', { policy: 'hour', key, cost: 8 }),
    reset: (key: string) => operate('hour', 'reset', { key }),
    ban: (key: string) => operate('banned', 'ban', { key, for: '1h' }),
    unban: (key: string) => operate('banned', 'unban', { key }),
  }
}

test.each([
  ['refund', 'hour'],
  ['reset', 'hour'],
  ['unban', 'banned'],
] as const)(
  'An isolate sees the %s of another isolate after at most ten seconds.',
  async (action, policy) => {
    const [isolate, other] = [startIsolate(), startIsolate()]
    if (policy === 'banned') await other.ban(action)
    else await isolate.decide(policy, action, 10)
    expect(await isolate.decide(policy, action)).toEqual([false, 1])
    expect(await isolate.decide(policy, action)).toEqual([false, 0]) // from memory

    expect((await other[action](action)).status).toBe(200)
    expect(await other.decide(policy, action)).toEqual([true, 1])
    clock.advance(LATEST_MS)
    expect(await isolate.decide(policy, action)).toEqual([true, 1])
  },
)

test.each(['refund', 'reset'] as const)('An isolate sees its own %s at once.', async (action) => {
  const isolate = startIsolate()
  const key = `own-${action}`
  await isolate.decide('hour', key, 10)
  expect(await isolate.decide('hour', key)).toEqual([false, 1])
  expect(await isolate.decide('hour', key)).toEqual([false, 0])
  await isolate[action](key)
  expect(await isolate.decide('hour', key)).toEqual([true, 1])
})

test('An isolate that has not refused a key sees a refund of another isolate at once.', async () => {
  const [isolate, other] = [startIsolate(), startIsolate()]
  await isolate.decide('hour', 'never-refused', 10)
  await other.refund('never-refused')
  expect(await isolate.decide('hour', 'never-refused')).toEqual([true, 1])
})
