/** `npx node bench/waits.ts`: 64 requests of one key that wait, at 1, 4 and 16 isolates. Prints a table. */
import { setTimeout } from 'node:timers/promises'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { slidingLog } from '../src/features/sliding-log/index.ts'
import { turns } from '../src/features/turns/index.ts'
import { createSluice } from '../src/hosts/app/sluice.ts'
import { durableObjects } from '../src/stores/durable-objects/index.ts'
import type { ObjectNamespace } from '../src/stores/durable-objects/runtime.ts'
import { memoryObjects } from '../test/support/memory-objects.ts'
import { table } from './stack/report/table.ts'

const REQUESTS = 64
const LIMIT = 10
/** The most units that pass in any half-open window (docs/explanation/algorithms.md). */
const BOUNDS = {
  'fixed-window': 2 * LIMIT,
  'sliding-window': 2 * LIMIT - 1,
  'sliding-log': LIMIT,
  'token-bucket': 2 * LIMIT - 1,
}
type Algorithm = keyof typeof BOUNDS

interface Passed {
  isolate: number
  /** The place in the order of arrival. */
  index: number
  /** The time of the charge by the clock of the store, ms since the epoch. */
  at: number
  hasWaited: boolean
}

const WINDOW_MS = 500

/** What has gone to the store: calls, and the requests with a ticket in them. */
const sent = { calls: 0, asks: 0 }
function note(body: unknown) {
  sent.calls += 1
  sent.asks += `${body}`.match(/:line,|"ticket":/g)?.length ?? 0
}

async function measure(algorithm: Algorithm, isolates: number, env: object, store: object) {
  const policy = {
    name: 'line',
    algorithm,
    limit: LIMIT,
    window: `${WINDOW_MS}ms`,
    key: 'global',
    wait: '60s',
  }
  const namespace = `waits-${algorithm}-${isolates}`
  const all = Array.from({ length: isolates }, () =>
    createSluice({
      deadline: '5s',
      namespace,
      ...store,
      policies: [policy as never],
      use: [turns(), slidingLog()],
    }),
  )
  Object.assign(sent, { calls: 0, asks: 0 })
  const passed: Passed[] = []
  const begin = async (index: number) => {
    const isolate = index % isolates
    await setTimeout(2 * index) // or all requests of an isolate come in one batch, before those of the others
    const request = new Request('http://localhost/')
    const { allowed, decision, headers } = await all[isolate]!.check(request, { env })
    if (!allowed || decision.fallback) throw new Error(`refused: ${decision.reason}`)
    passed.push({
      isolate,
      index,
      at: decision.decidedAt!,
      hasWaited: headers.has('server-timing'),
    })
  }
  await Promise.all(Array.from({ length: REQUESTS }, (_, index) => begin(index)))
  const waited = passed.filter(({ hasWaited }) => hasWaited)
  return {
    waited: waited.length,
    over: Math.max(0, ...passed.map(({ at }) => within(passed, at) - BOUNDS[algorithm])),
    // A request that passes at once has asked once.
    asks: (sent.asks - (REQUESTS - waited.length)) / waited.length,
    calls: sent.calls / waited.length,
    disorder: waited.filter((one) => waited.some((other) => overtakes(other, one))).length,
    jain: jain(waited.slice(0, waited.length / 2), isolates),
  }
}

const within = (passed: Passed[], from: number) =>
  passed.filter(({ at }) => at >= from && at < from + WINDOW_MS).length

/** True if a request passes before an earlier one of its isolate. */
const overtakes = (other: Passed, one: Passed) =>
  other.isolate === one.isolate && other.index > one.index && other.at < one.at

/** Jain's index of what each isolate has got when half of those that wait have passed: 1 if all got the same. */
function jain(passed: Passed[], isolates: number): number {
  const got = Array.from({ length: isolates }, () => 0)
  for (const { isolate } of passed) got[isolate]! += 1
  const squares = got.reduce((sum, one) => sum + one ** 2, 0)
  return passed.length ** 2 / (isolates * squares)
}

const redis = await startRedis({ own: true })
const bridge = await startBridge({ redis: redis.url })
const { fetch } = globalThis
globalThis.fetch = (input, init) => {
  note(init?.body)
  return fetch(input, init)
}
const onRedis = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
const { objects } = memoryObjects()
const counted: ObjectNamespace = {
  ...objects,
  get: (id) => ({
    fetch(url, init) {
      note(init.body)
      return objects.get(id).fetch(url, init)
    },
  }),
}
const inObjects = { SLUICE_SUBJECT: counted, SLUICE_SECRET: 'a secret for benchmarks' }
const head = [
  'algorithm',
  'store',
  'isolates',
  'waited',
  'over the bound',
  'asks of each that waited',
  'HTTP calls of each',
  'passed by a later one of its isolate',
  "Jain's index",
]
const rows: (string | number)[][] = []
for (const [name, env, store] of [
  ['Redis', onRedis, {}],
  ['Durable Objects', inObjects, { store: durableObjects() }],
] as const) {
  for (const algorithm of Object.keys(BOUNDS) as Algorithm[]) {
    for (const isolates of [1, 4, 16]) {
      const found = await measure(algorithm, isolates, env, store)
      const { waited, over, asks, calls, disorder, jain } = found
      const figures = [asks, calls].map((value) => value.toFixed(2))
      rows.push([algorithm, name, isolates, waited, over, ...figures, disorder, jain.toFixed(2)])
    }
  }
}
console.log(table(head, rows))
await bridge.close()
await redis.stop()
