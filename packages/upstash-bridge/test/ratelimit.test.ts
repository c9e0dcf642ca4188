import { IpDenyList, Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

/** @upstash/ratelimit 2.2.0 as it is: its scripts carry the flag that stock Redis refuses. */
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

const commands = () => stack.bridge.stats().dev!.commands

/** What `work` costs in commands as Upstash bills them. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  const before = commands()
  await work()
  return commands() - before
}

// Windows so long that no test runs into the next one.
describe.each([
  ['fixed window', Ratelimit.fixedWindow(3, '1 d'), { first: 3, next: 2, denied: 2, left: 2 }],
  ['sliding window', Ratelimit.slidingWindow(3, '1 d'), { first: 5, next: 4, denied: 3, left: 3 }],
  ['token bucket', Ratelimit.tokenBucket(3, '1 d', 3), { first: 4, next: 4, denied: 2, left: 2 }],
])('%s', (_, limiter, costs) => {
  const limit = () =>
    new Ratelimit({ redis, limiter, ephemeralCache: false, enableTelemetry: false })

  test('lets as many through as it should, from one client or many', async () => {
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

  test('costs the commands that Upstash documents', async () => {
    const { limit: take, getRemaining } = {
      limit: () => limit().limit('x'),
      getRemaining: () => limit().getRemaining('x'),
    }
    await take() // its script is loaded now
    await stack.direct('FLUSHALL')
    expect(await cost(take)).toBe(costs.first)
    expect(await cost(take)).toBe(costs.next)
    expect(await cost(take)).toBe(costs.next)
    expect(await cost(take)).toBe(costs.denied)
    await getRemaining()
    expect(await cost(getRemaining)).toBe(costs.left)
  })

  test('survives SCRIPT FLUSH', async () => {
    await limit().limit('y')
    await stack.direct('SCRIPT', 'FLUSH')
    expect(await limit().limit('y')).toMatchObject({ success: true, remaining: 1 })
  })

  test('gives back what was used', async () => {
    for (let index = 0; index < 4; index++) await limit().limit('z')
    await limit().resetUsedTokens('z')
    expect((await limit().limit('z')).success).toBe(true)
  })
})

test('the cached fixed window, a deny list, analytics and a dynamic limit work', async () => {
  await IpDenyList.disableIpDenyList(redis, '@upstash/ratelimit') // a list from the internet
  const all = new Ratelimit({
    redis,
    limiter: Ratelimit.slidingWindow(2, '1 d'),
    analytics: true,
    dynamicLimits: true,
    enableProtection: true,
    ephemeralCache: false,
  })
  await all.setDynamicLimit({ limit: 1 })
  await redis.sadd('@upstash/ratelimit:denyList:all', 'villain')
  const first = await all.limit('hero', { ip: 'harmless' })
  const second = await all.limit('hero')
  const third = await all.limit('other', { userAgent: 'villain' })
  await Promise.all([first.pending, second.pending, third.pending])
  expect([first.success, second.success, third.reason]).toEqual([true, false, 'denyList'])
  const cached = new Ratelimit({
    redis,
    limiter: Ratelimit.cachedFixedWindow(2, '1 d'),
    ephemeralCache: new Map(),
  })
  const answers = []
  for (let index = 0; index < 4; index++) {
    const { success, pending } = await cached.limit('c')
    await pending // the rest of its work: it must not outlive the bridge
    answers.push(success)
  }
  expect(answers.filter(Boolean)).toHaveLength(2)
})
