/** A Worker that shards over two databases. One bridge serves both. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect } from 'vitest'
import { type RunningOrigin, startOrigin } from '../../cli/dev/origin.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { Decision } from '../../src/core/base/decision.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { shards as shardsOf } from '../../src/features/shards/index.ts'
import { rendezvous } from '../../src/features/shards/rendezvous.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'

export const shards = ['eu-1', 'eu-2']
const shardOf = rendezvous(shards)
const apiToken = 'a-api-token-for-tests'
export const operateToken = 'an-operate-token-for-tests'

export const quota = { algorithm: 'fixed-window', limit: 3, window: '1d' } as const
const policies: PolicyOptions[] = (['allow', 'deny', 'local'] as const).flatMap((onStoreError) =>
  ['x', 'y'].map((letter) => ({
    ...quota,
    name: `${onStoreError}-${letter}`,
    key: `header:x-${letter}` as const,
    onMissingKey: 'skip' as const,
    onStoreError,
    localShare: 0.34,
    match: { path: `/${onStoreError}` },
  })),
)
const config: ConfigOptions = {
  use: [shardsOf(shards)],
  hashKeys: false, // so that a test knows which database has a key
  degradedHeader: true,
  deadline: '10s', // a busy machine must not turn a wait into a store error
  policies: [
    ...policies,
    {
      ...quota,
      name: 'shown',
      key: 'header:x-x',
      match: { path: '/shadow' },
      onStoreError: 'allow',
    },
    { ...quota, name: 'hidden', key: 'header:x-y', match: { path: '/shadow' }, mode: 'shadow' },
  ],
}

/** The running servers. Tests stop the Worker and the databases, and start new ones. */
export const running = {} as {
  redis: RunningRedis[]
  bridge: Bridge
  origin: RunningOrigin
  worker: RunningWorker
}

export async function startShards() {
  // These tests stop Redis, so they always start their own.
  delete process.env.REDIS_URL
  running.redis = await Promise.all(shards.map(() => startRedis()))
  running.bridge = await startBridge({
    redis: running.redis.map(({ url }, index) => ({ url, token: shards[index]! })),
  })
  running.origin = await startOrigin()
  running.worker = await newWorker()
}

export async function stopShards() {
  await running.worker.stop()
  await Promise.all([running.bridge.close(), running.origin.close()])
  await Promise.all(running.redis.map((one) => one.stop()))
}

/** workerd logs an error if a request waits for the I/O of another request. */
export const expectNoCrossedAnswers = () =>
  expect(running.worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)

/** Restarts the Worker with a changed configuration. */
export async function restartWorker(...changes: Parameters<typeof newWorker>) {
  await running.worker.stop()
  running.worker = await newWorker(...changes)
}

const newWorker = (change: Partial<ConfigOptions> = {}, env: Record<string, string> = {}) =>
  startWorker(fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url)), {
    env: {
      UPSTASH_REDIS_REST_URL_EU_1: running.bridge.url,
      UPSTASH_REDIS_REST_TOKEN_EU_1: 'eu-1',
      UPSTASH_REDIS_REST_URL_EU_2: running.bridge.url,
      UPSTASH_REDIS_REST_TOKEN_EU_2: 'eu-2',
      SLUICE_SECRET: 'a-secret-of-names',
      SLUICE_API_TOKEN: apiToken,
      SLUICE_OPERATE_TOKEN: operateToken,
      ORIGIN: running.origin.url,
      CONFIG: JSON.stringify({ ...config, ...change }),
      ...env,
    },
  })

let keys = 0
/** A new value of the header whose subject belongs to the shard with this index. */
export function keyAt(shard: number, header: string): string {
  for (;;) {
    const key = `key-${++keys}`
    if (shardOf(`header:${header}=${key}`) === shard) return key
  }
}

export const get = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(running.worker.url + path, { headers, redirect: 'manual' })
  const body = await response.text()
  return {
    status: response.status,
    remaining: [...(response.headers.get('ratelimit') ?? '').matchAll(/;r=(\d+)/g)].map(([, r]) =>
      Number(r),
    )[0],
    policies: [...(response.headers.get('ratelimit-policy') ?? '').matchAll(/"([^"]+)"/g)].map(
      ([, name]) => name,
    ),
    fallback: response.headers.get('sluice-degraded'),
    shadow: /"sluice-shadow": "(.*?)"[,\n]/i.exec(body)?.[1],
  }
}
export const api = async <T>(path: string, body?: unknown, token = apiToken) => {
  const response = await fetch(`${running.worker.url}/_sluice/v1${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${token}` },
  })
  return (await response.json()) as T
}
/** The remaining units of a policy for a key. */
export const remainingOf = async (policy: string, key: string) =>
  (await api<Decision>('/decide', { policy, key, mode: 'peek' })).limits[0]?.remaining

/** Kills a database. Returns a function that starts it again. */
export async function kill(shard: number) {
  const { url } = running.redis[shard]!
  await running.redis[shard]!.stop()
  return async () => {
    running.redis[shard] = await startRedis({ port: Number(new URL(url).port) })
    await until(async () => (await get('/deny', { 'x-x': keyAt(shard, 'x-x') })).status === 200)
  }
}
export async function until(holds: () => Promise<boolean>) {
  for (let attempt = 0; !(await holds()); attempt++) {
    if (attempt === 200) throw new Error('The condition did not become true within 10 s.')
    await sleep(50)
  }
}
