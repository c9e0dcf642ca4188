/** The guide "Move from @upstash/ratelimit", from the packed package: each documented example of the library does the same with Sluice. */
import { readFile, rm } from 'node:fs/promises'
import { startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { pageAt, sectionOf } from '../support/pages.ts'
import { installConsumer, runIn } from './support/consumer.ts'

let folder: string
let seen: Record<string, { library: unknown; sluice: unknown }>

beforeAll(async () => {
  folder = await installConsumer({
    packages: ['@upstash/ratelimit@2.2.0', '@upstash/redis@1.39.0'],
    files: {
      'package.json': '{ "type": "module" }',
      'moved.mjs': await readFile(new URL('support/moved.mjs', import.meta.url), 'utf8'),
    },
  })
  const redis = await borrowRedis()
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  try {
    const printed = await runIn(folder, process.execPath, ['moved.mjs'], {
      UPSTASH_REDIS_REST_URL: bridge.url,
      UPSTASH_REDIS_REST_TOKEN: bridge.token,
    })
    seen = JSON.parse(printed.trim().split('\n').at(-1)!)
  } finally {
    await bridge.close()
    await redis.stop()
  }
}, 300_000)
afterAll(() => folder && rm(folder, { recursive: true, force: true }))

const refusedAfter = (admitted: number, calls: number) =>
  Array.from({ length: calls }, (_, index) => index < admitted)

test.each([
  ['tiers', [refusedAfter(2, 5), refusedAfter(4, 5)]],
  ['blockUntilReady', [true, true]],
  ['blockUntilReady for too short a time', [true, false]],
  ['getRemaining', [2, 2]],
  ['resetUsedTokens', 2],
  ['custom rates', [true, true, false]],
  ['dynamic limits', refusedAfter(5, 6)],
])('The example of %s does the same with both.', (name, result) => {
  expect(seen[name]).toEqual({ library: result, sluice: result })
})

test('Each example is a row of the guide.', () => {
  const table = sectionOf(pageAt('docs/guides/migrate-from-upstash-ratelimit.md'), 'A call')
  for (const call of ['tier', 'blockUntilReady', 'getRemaining', 'resetUsedTokens', 'rate: 3']) {
    expect(table).toContain(call)
  }
  for (const call of ['setDynamicLimit', 'MultiRegionRatelimit']) expect(table).toContain(call)
})
