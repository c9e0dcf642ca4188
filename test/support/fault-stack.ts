import { get, type IncomingMessage, type RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Bridge, type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { expect, vi } from 'vitest'
import { type RunningOrigin, startOrigin } from '../../cli/dev/origin.ts'
import type { JsonConfig } from '../../tools/any-config.ts'
import { type RunningWorker, startWorker } from '../../tools/worker.ts'
import { borrowRedis } from './borrow-redis.ts'
import { type Faults, startFaults } from './fault-proxy/index.ts'
import { planted, secrets } from './secrets.ts'

const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))

/** A response as the client received it. `ms` is the time from the request to the last byte. */
export interface Answer {
  status: number
  headers: Headers
  body: string
  ms: number
  /** True if the response is from the origin. */
  passed: boolean
}

export interface FaultStack {
  redis: RunningRedis
  bridge: Bridge
  origin: RunningOrigin
  faults: Faults
  /** Ends the fault, stops the Worker and starts one with a new isolate. `store` defaults to the URL of the fault proxy. */
  renew(
    config: JsonConfig,
    store?: string,
    variables?: Record<string, string>,
  ): Promise<RunningWorker>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Waits up to 2 s for log lines of this event. */
  logged(event: string): Promise<{ event: string; code: string; message: string }[]>
  /** Everything that Sluice has written: log lines, header fields, and bodies except those of the origin. */
  output(): string
  stop(): Promise<void>
}

/** Starts Redis, the bridge, the fault proxy and the origin; `renew` starts a Worker. Every request has the planted secrets. */
export async function startFaultStack(): Promise<FaultStack> {
  const redis = await borrowRedis({ own: true }) // a fault removes its scripts
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
      await faults.set(null) // a failed test may have left one
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
      // The origin echoes the request, so its body may have the secrets.
      const passed = body.startsWith('{\n') && body.includes('"headers"')
      emitted.push(JSON.stringify([...response.headers]), passed ? '' : body)
      return { status: response.status, headers: response.headers, body, ms, passed }
    },
    async logged(event) {
      // Log lines arrive shortly after the response.
      for (let attempt = 0; ; attempt++) {
        const lines = worker!.logs.map((line) => JSON.parse(line))
        const found = lines.filter((line) => line.event === event)
        if (found.length > 0 || attempt === 100) return found
        await sleep(20)
      }
    },
    output: () => [...emitted, ...(worker?.logs ?? [])].join('\n'),
    async stop() {
      await stopWorker()
      await faults.close()
      await Promise.all([bridge.close(), origin.close()])
      await redis.stop()
    },
  }
}

/** The answer to a request that was sent directly to workerd. */
export interface DirectAnswer {
  status: number
  /** The remaining units in `RateLimit`. */
  remaining: number | undefined
}

/** Sends a request of a key directly to workerd, because Miniflare's entry hides closed connections. */
export const askDirectly = (
  { directUrl }: RunningWorker,
  key: string,
  options: RequestOptions = {},
  path = '/',
) =>
  new Promise<DirectAnswer>((resolve, reject) => {
    const whole = async (response: IncomingMessage) => {
      for await (const _ of response);
      const remaining = /;r=(\d+)/.exec(String(response.headers.ratelimit))?.[1]
      resolve({
        status: response.statusCode!,
        remaining: remaining === undefined ? remaining : Number(remaining),
      })
    }
    get(directUrl + path, { headers: { 'x-key': key }, ...options }, (response) => {
      whole(response).catch(reject)
    }).on('error', reject)
  })

/** All calls that have arrived at the fault proxy. */
export const callsOf = ({ faults }: FaultStack) =>
  Object.values(faults.counts().arrived).reduce((sum, one) => sum + one, 0)

export const many = <T>(count: number, task: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => task(index)))

export const statuses = (answers: { status: number }[]) =>
  answers.map(({ status }) => status).sort()

/** Repeats a request until the store decides, which takes longer on a busy machine. */
export const decision = ({ get }: FaultStack, path: string, headers: Record<string, string> = {}) =>
  vi.waitFor(async () => expect((await get(path, headers)).headers.has('ratelimit')).toBe(true), {
    timeout: 10_000,
  })

/** Waits until the store decides and the calls that follow a decision, such as a release, have been made. */
export async function decided(
  stack: FaultStack,
  path: string,
  headers: Record<string, string> = {},
) {
  await decision(stack, path, headers)
  let calls = ''
  const isQuiet = () => {
    const before = calls
    calls = JSON.stringify(stack.faults.counts())
    expect(calls).toBe(before)
  }
  await vi.waitFor(isQuiet, { timeout: 10_000, interval: 300 })
}
