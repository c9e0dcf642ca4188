import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openServer } from '../../../tools/bench/server.ts'
import { startFarRedis } from '../../../tools/bench/stack/bridge.ts'
import { startLoad } from '../../../tools/bench/stack/load.ts'
import { settingsOf } from '../../../tools/bench/stack/variants.ts'
import { pinned, startIsolate } from '../../../tools/bench/stack/workerd.ts'
import { buildEntry } from '../../../tools/build.ts'

let cleanUp = new AsyncDisposableStack()
afterEach(async () => {
  await cleanUp.disposeAsync()
  cleanUp = new AsyncDisposableStack()
})

/** Starts a resource that ends with the test. */
async function use<Tool>(starting: Promise<Tool> | Tool, stop: (tool: Tool) => unknown) {
  const tool = await starting
  cleanUp.defer(async () => void (await stop(tool)))
  return tool
}

// V8 optimizes the code after some thousands of requests. The requests of a batch then depended on each other's I/O, in most runs.
const once = { timeout: 60_000, retry: 0 }
test(
  'Each request of a batch gets its response, also after V8 has optimized the code.',
  once,
  async () => {
    const server = await use(openServer(), (it) => it.stop())
    const load = await use(startLoad(), (it) => it.stop())
    const far = await use(startFarRedis(server.url, 10), (it) => it.stop())
    const outdir = join(import.meta.dirname, '../../../.cache/workers/bench-batching')
    await buildEntry(outdir, 'tools/bench/stack/workers/ours.ts')
    const env = {
      UPSTASH_REDIS_REST_URL: far.url,
      UPSTASH_REDIS_REST_TOKEN: far.token,
      settings: settingsOf('ours', [{ limit: 1_000_000, windowMs: 3_600_000 }]),
    }
    const isolate = await use(startIsolate(outdir, env, pinned), (it) => it.stop())
    const order = { ports: [isolate.port], network: 0, clients: 1000 }
    const warm = await load.run({ ...order, connections: 64, ms: 5000 })
    const random = await load.run({ ...order, rate: 500, ms: 12_000 })
    // On a busy machine a decision may exceed its deadline (503), or a request may find no connection (0).
    expect(warm.statuses[500]).toBeUndefined()
    expect(random.statuses[500]).toBeUndefined()
    expect(random.statuses[200]).toBeGreaterThan(0.9 * random.count)
    expect(await far.calls()).toBeLessThan(0.8 * (warm.count + random.count))
  },
)
