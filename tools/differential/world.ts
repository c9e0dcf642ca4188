/** What both sides run in: one Redis, the bridge in front of it, an origin, and a network with faults. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { ORIGIN, VARIABLES } from './configs.ts'
import type { Case, Fault, Outage } from './requests.ts'
import type { VirtualTime } from './time.ts'

const TOKEN = 'a-local-token'
/** The header with the number of a request, by which the origin knows it. */
export const NUMBER = 'x-number'
/** How long a call takes in each direction, ms, and a slow one altogether. */
export const [WAY_MS, SLOW_MS] = [2, 560]

/** What a run of requests is done in. */
export interface Scene {
  time: VirtualTime
  env: object
  cases: Case[]
  outages: Outage[]
}

/** The fault of calls at a time, ms since the epoch. */
export const faultAt = (outages: Outage[], at: number): Fault | undefined =>
  outages.find(({ from, to }) => from <= at && at < to)?.fault

export interface World {
  env: Record<string, string>
  /** The scene of the run. Calls are made in it. */
  scene: Scene | undefined
  /** The records of a namespace, by their keys without it. */
  recordsOf: (namespace: string) => Promise<Record<string, unknown>>
  close: () => Promise<void>
}

export async function startWorld(): Promise<World> {
  const redis = await startRedis()
  const clock = () => world.scene?.time.now ?? Date.now()
  const bridge = await startBridge({ redis: redis.url, token: TOKEN, clock })
  const way = await startWay(Number(new URL(redis.url).port))
  const withoutRedis = await startBridge({ redis: way.url, token: TOKEN, timeout: 50 })
  way.block()

  const realFetch = fetch
  /** A call over the real network, with the whole response. */
  async function call(url: string, init: RequestInit | undefined): Promise<Response> {
    const { signal: _, ...rest } = init ?? {}
    const response = await realFetch(url, rest)
    const { status, headers } = response
    return new Response(await response.arrayBuffer(), { status, headers })
  }
  globalThis.fetch = async (input, init) => {
    const { scene } = world
    const url = input instanceof Request ? input.url : String(input)
    if (!scene) return realFetch(input, init)
    const { time, cases, outages } = scene
    if (url.startsWith(ORIGIN)) {
      const headers = input instanceof Request ? input.headers : new Headers(init?.headers)
      return cases[Number(headers.get(NUMBER))]!.response()
    }
    await time.sleep(WAY_MS)
    const fault = faultAt(outages, time.now)
    if (fault === 'down') throw new TypeError('fetch failed')
    const address = fault === 'stopped' ? url.replace(bridge.url, withoutRedis.url) : url
    const response = await time.outside(() => call(address, init))
    await time.sleep(fault === 'slow' ? SLOW_MS : WAY_MS)
    if (fault === 'lost') throw new TypeError('terminated')
    return fault === 'page' ? new Response('<html>', { status: 502 }) : response
  }

  async function command(...words: string[]): Promise<unknown> {
    const headers = { Authorization: `Bearer ${TOKEN}` }
    const body = JSON.stringify(words)
    const response = await realFetch(bridge.url, { method: 'POST', headers, body })
    const { result, error } = (await response.json()) as { result?: unknown; error?: string }
    if (error) throw new Error(error)
    return result
  }
  async function recordsOf(namespace: string) {
    const records: Record<string, unknown> = {}
    for (const key of (await command('KEYS', `sluice:1:${namespace}:*`)) as string[]) {
      const type = await command('TYPE', key)
      records[key.replace(`:${namespace}:`, ':')] =
        type === 'string'
          ? await command('GET', key)
          : await command('ZRANGE', key, '0', '-1', 'WITHSCORES')
      await command('DEL', key)
    }
    return records
  }

  const env: Record<string, string> = {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: TOKEN,
    ...VARIABLES,
  }
  // The hosts of Node read the variables of the process.
  Object.assign(process.env, env)
  const world: World = {
    env,
    scene: undefined,
    recordsOf,
    async close() {
      await Promise.all([bridge.close(), withoutRedis.close()])
      way.close()
      await redis.stop()
    },
  }
  return world
}

/** A way to Redis that ends. Its port stays taken, so that no other server answers there. */
async function startWay(port: number) {
  const sockets = new Set<Socket>()
  let isBlocked = false
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    if (isBlocked) return // who closes a connection at once is asked again at once
    const redis = connect(port, '127.0.0.1').on('error', () => {})
    socket.pipe(redis).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    block() {
      isBlocked = true
      for (const socket of sockets) socket.destroy()
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
