/** Two Workers under load while their clients move to a third database. */
import { fileURLToPath } from 'node:url'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { moveShards } from '../../dev/shards/move.ts'
import { statusOf } from '../../dev/shards/status.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/config/options.ts'
import { shards } from '../../src/shards/index.ts'
import { createTransport } from '../../src/store/upstash/transport.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'

const OLD = ['eu-1', 'eu-2']
const NEW = [...OLD, 'eu-3']
const apiToken = 'a-api-token-for-tests'

const LIMIT = 20
const algorithms = ['fixed-window', 'sliding-window', 'token-bucket', 'sliding-log'] as const
const policies = algorithms.map(
  (algorithm): PolicyOptions => ({
    ...{ name: algorithm, algorithm, limit: LIMIT, window: '365d', key: 'header:x-client' },
    ...{ onStoreError: 'deny', match: { path: `/${algorithm}` } },
  }),
)
const config: ConfigOptions = {
  shards: shards(NEW, { moveFrom: OLD }),
  deadline: '20s', // a busy machine must not turn a wait into a store error
  denialCache: false,
  policies,
}

let redis: RunningRedis[]
let bridge: Bridge
let workers: RunningWorker[]

const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
const newWorker = () =>
  startWorker(anyConfig, {
    env: {
      ...Object.fromEntries(
        NEW.flatMap((name) => {
          const suffix = name.replace('-', '_').toUpperCase()
          return [
            [`UPSTASH_REDIS_REST_URL_${suffix}`, bridge.url],
            [`UPSTASH_REDIS_REST_TOKEN_${suffix}`, name],
          ]
        }),
      ),
      SLUICE_SECRET: 'a-secret-of-names',
      SLUICE_API_TOKEN: apiToken,
      CONFIG: JSON.stringify(config),
    },
  })

beforeAll(async () => {
  redis = await Promise.all(NEW.map(() => startRedis()))
  bridge = await startBridge({ redis: redis.map(({ url }, n) => ({ url, token: NEW[n]! })) })
  workers = await Promise.all([newWorker(), newWorker()])
})
afterAll(async () => {
  await Promise.all(workers.map((one) => one.stop()))
  await bridge.close()
  await Promise.all(redis.map((one) => one.stop()))
})

const decide = async (worker: RunningWorker, policy: string, key: string) => {
  const response = await fetch(`${worker.directUrl}/_sluice/v1/decide`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${apiToken}` },
    body: JSON.stringify({ policy, key }),
  })
  return (await response.json()) as { allowed: boolean; reason: string }
}

test('500 requests a second during a move get exactly their quotas.', {
  timeout: 120_000,
}, async () => {
  const databases = NEW.map((name) => ({ name, send: createTransport(bridge.url, name) }))
  const clients = Array.from({ length: 24 }, (_, n) => `client-${n}`)
  const quotas = clients.flatMap((key) => algorithms.map((policy) => ({ policy, key })))
  const admitted = new Map(quotas.map((quota) => [quota, 0]))
  const unexpected = new Set<string>()
  let sent = 0
  let inFlight = 0
  async function request() {
    const quota = quotas[sent++ % quotas.length]!
    inFlight += 1
    const { allowed, reason } = await decide(workers[sent % 2]!, quota.policy, quota.key)
    inFlight -= 1
    if (allowed) admitted.set(quota, admitted.get(quota)! + 1)
    else if (reason !== 'limited') unexpected.add(reason)
  }
  /** Sends 500 requests a second until `count` are sent. At most 100 are in flight, in case the machine is slower. */
  async function load(count: number) {
    const pending: Promise<void>[] = []
    const [startedAt, first] = [performance.now(), sent]
    while (sent - first < count) {
      const due = Math.min(count, ((performance.now() - startedAt) * 500) / 1000)
      while (sent - first < due && inFlight < 100) pending.push(request())
      await new Promise((resolve) => setTimeout(resolve, 4))
    }
    await Promise.all(pending)
  }

  await load(8 * quotas.length)
  const moving = moveShards({ from: OLD, to: NEW, databases, rate: 20 })
  await load(24 * quotas.length)
  const { moved, strays } = await moving

  expect([...unexpected]).toEqual([])
  expect([...new Set(admitted.values())]).toEqual([LIMIT])
  expect(moved).toBeGreaterThan(10)
  expect(strays).toBe(0)
  for (const database of databases) {
    expect((await statusOf(database, { from: OLD, to: NEW })).left).toBe(0)
  }
  for (const { logs } of workers) expect(logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})
