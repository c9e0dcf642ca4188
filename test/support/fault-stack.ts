import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Faults, startFaults } from 'sluice-fault-proxy'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { type RunningOrigin, startOrigin } from '../../dev/origin.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { planted, secrets } from './secrets.ts'

// These tests flush and stop their Redis: never somebody else's.
delete process.env.REDIS_URL

const anyConfig = fileURLToPath(new URL('../../dist/any-config', import.meta.url))

/** An answer as a client saw it. `ms` is how long it took, from the request to the last byte. */
export interface RequestView {
  status: number
  headers: Headers
  body: string
  ms: number
  /** Whether it came from the origin. */
  passed: boolean
}

export interface FaultStack {
  redis: RunningRedis
  bridge: Bridge
  origin: RunningOrigin
  faults: Faults
  /** A Worker that has just started, its isolate new, behind the proxy (or another store); the one before it is stopped. */
  renew(
    config: ConfigOptions,
    store?: string,
    variables?: Record<string, string>,
  ): Promise<RunningWorker>
  get(path: string, headers?: Record<string, string>): Promise<RequestView>
  /** The Worker's log lines of an event, when there is one. */
  logged(event: string): Promise<{ event: string; code: string; message: string }[]>
  /** All that Sluice said so far: log lines, and all but the origin's words of its answers. */
  said(): string
  stop(): Promise<void>
}

/** Redis, bridge, fault proxy and origin; Workers come and go. Every request brings the planted secrets. */
export async function startFaultStack(): Promise<FaultStack> {
  const redis = await startRedis()
  const bridge = await startBridge({ redis: redis.url, token: secrets.token })
  const origin = await startOrigin()
  const faults = await startFaults({ target: bridge.url })
  const emitted: string[] = []
  let worker: RunningWorker | undefined

  async function stopWorker() {
    await worker?.stop()
    emitted.push(...(worker?.logs ?? []))
    worker = undefined
  }

  return {
    redis,
    bridge,
    origin,
    faults,
    async renew(config, store = faults.url, variables = {}) {
      await stopWorker()
      worker = await startWorker(anyConfig, {
        env: {
          UPSTASH_REDIS_REST_URL: store,
          UPSTASH_REDIS_REST_TOKEN: secrets.token,
          SLUICE_SECRET: secrets.secret,
          ...(config.origin === undefined && { ORIGIN: origin.url }),
          CONFIG: JSON.stringify(config),
          ...variables,
        },
      })
      return worker
    },
    async get(path, headers = {}) {
      const start = performance.now()
      const response = await fetch(worker!.url + path, {
        redirect: 'manual',
        headers: { 'cf-connecting-ip': secrets.ipv4, ...planted, ...headers },
      })
      const body = await response.text()
      const ms = performance.now() - start
      // The echo says what it was sent, the secrets too.
      const passed = body.startsWith('{\n') && body.includes('"headers"')
      emitted.push(JSON.stringify([...response.headers]), passed ? '' : body)
      return { status: response.status, headers: response.headers, body, ms, passed }
    },
    async logged(event) {
      // Lines arrive a moment after the answer.
      for (let attempt = 0; ; attempt++) {
        const lines = worker!.logs.map((line) => JSON.parse(line))
        const found = lines.filter((line) => line.event === event)
        if (found.length > 0 || attempt === 100) return found
        await sleep(20)
      }
    },
    said: () => [...emitted, ...(worker?.logs ?? [])].join('\n'),
    async stop() {
      await stopWorker()
      await faults.close()
      await Promise.all([bridge.close(), origin.close()])
      await redis.stop()
    },
  }
}
