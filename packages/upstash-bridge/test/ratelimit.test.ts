import { IpDenyList, Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BridgeStack, CLUSTER, startBridgeStack } from './stack.ts'

/** Tests the unchanged @upstash/ratelimit 2.2.0, whose scripts have the flag that stock Redis refuses. */
let stack: BridgeStack
let redis: Redis
beforeAll(async () => {
  stack = await startBridgeStack()
  redis = new Redis({ url: stack.bridge.url, token: stack.bridge.token })
})
beforeEach(async () => {
  await stack.direct('FLUSHALL')
})
afterAll(() => stack?.stop())

/** The library uses several keys for one client. A hash tag puts all its keys into one slot of a cluster. */
const prefix = CLUSTER ? '{@upstash/ratelimit}' : '@upstash/ratelimit'

const commands = () => stack.bridge.stats().dev!.commands

/** The number of commands that Upstash would bill for `work`. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  const before = commands()
  await work()
  return commands() - before
}

// The windows are long enough that no test reaches the next window.
describe.each([
  ['fixed window', Ratelimit.fixedWindow(3, '1 d'), { first: 3, next: 2, denied: 2, left: 2 }],
  ['sliding window', Ratelimit.slidingWindow(3, '1 d'), { first: 5, next: 4, denied: 3, left: 3 }],
  ['token bucket', Ratelimit.tokenBucket(3, '1 d', 3), { first: 4, next: 4, denied: 2, left: 2 }],
])('%s', (_, limiter, costs) => {
  const limit = () =>
    new Ratelimit({ redis, limiter, ephemeralCache: false, enableTelemetry: false, prefix })

  test('The limiter admits exactly the limit, for one client and for several.', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        limit()
          .limit('somebody')
          .then(({ success }) => success),
      ),
    )
    expect(answers.filter(Boolean)).toHaveLength(3)
    expect((await limit().limit('somebody else')).success).toBe(true)
  })

  test('The limiter uses the number of commands that Upstash documents.', async () => {
    const { limit: take, getRemaining } = {
      limit: () => limit().limit('x'),
      getRemaining: () => limit().getRemaining('x'),
    }
    await take() // loads the script
    await stack.direct('FLUSHALL')
    expect(await cost(take)).toBe(costs.first)
    expect(await cost(take)).toBe(costs.next)
    expect(await cost(take)).toBe(costs.next)
    expect(await cost(take)).toBe(costs.denied)
    await getRemaining()
    expect(await cost(getRemaining)).toBe(costs.left)
  })

  test('The limiter works after SCRIPT FLUSH.', async () => {
    await limit().limit('y')
    await stack.direct('SCRIPT', 'FLUSH')
    expect(await limit().limit('y')).toMatchObject({ success: true, remaining: 1 })
  })

  test('Resetting an identifier restores its limit.', async () => {
    for (let index = 0; index < 4; index++) await limit().limit('z')
    await limit().resetUsedTokens('z')
    expect((await limit().limit('z')).success).toBe(true)
  })
})

test('The cached fixed window, deny lists, analytics and dynamic limits work.', async () => {
  await IpDenyList.disableIpDenyList(redis, prefix) // otherwise downloads a list from the internet
  const all = new Ratelimit({
    redis,
    limiter: Ratelimit.slidingWindow(2, '1 d'),
    analytics: true,
    dynamicLimits: true,
    enableProtection: true,
    prefix,
    ephemeralCache: false,
  })
  await all.setDynamicLimit({ limit: 1 })
  await redis.sadd(`${prefix}:denyList:all`, 'villain')
  const first = await all.limit('hero', { ip: 'harmless' })
  const second = await all.limit('hero')
  const third = await all.limit('other', { userAgent: 'villain' })
  await Promise.all([first.pending, second.pending, third.pending])
  expect([first.success, second.success, third.reason]).toEqual([true, false, 'denyList'])
  const cached = new Ratelimit({
    redis,
    limiter: Ratelimit.cachedFixedWindow(2, '1 d'),
    prefix,
    ephemeralCache: new Map(),
  })
  const answers = []
  for (let index = 0; index < 4; index++) {
    const { success, pending } = await cached.limit('c')
    await pending // wait for background work, which must end before the bridge
    answers.push(success)
  }
  expect(answers.filter(Boolean)).toHaveLength(2)
})
