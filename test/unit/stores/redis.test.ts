/** `sluice/redis`: the client of the app sends each call once, whatever happens to its connection. */
import { freePort, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ask, startSentinel } from '../../../packages/upstash-bridge/test/sentinels.ts'
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { redis } from '../../../src/stores/redis.ts'
import { useDatabase } from '../../support/database.ts'
import {
  POOL,
  poolClients,
  redisClients,
  sentinelClients,
  storeOf,
} from '../../support/redis-clients.ts'
import { type Connection, openConnection } from '../../support/redis-connection.ts'
import { policy, row, take } from '../../support/split-redis.ts'
import { newSubject } from '../../support/subjects.ts'
import { startRelay } from '../../support/tcp-relay.ts'

const database = useDatabase()
let admin: Connection
beforeAll(async () => {
  admin = await openConnection(database.redis.url)
})
afterAll(() => admin?.destroy())

const policies: PolicyOptions[] = [{ name: 'per-ip', limit: 2, window: '1h' }]
const options = { clientAddress: 'socket', deadline: '10s', policies } as const

const LIMIT = 10
const terms = { ...policy, limit: LIMIT, burst: LIMIT }
let subject: string
beforeEach(() => {
  subject = newSubject()
})
const charge = () => take(row(subject, { terms }))

/** The units that Redis has counted for the subject. */
async function counted() {
  const { client, close } = redisClients.redis!(database.redis.url)
  onTestFinished(close)
  const peek = { mode: 'peek' as const, limits: [row(subject, { terms })] }
  const { states } = await storeOf(client).decide([peek])
  return LIMIT - states[0]![0]!.remaining
}

describe.each(Object.entries({ ...redisClients, ...poolClients }))(
  'A client of %s',
  (name, open) => {
    /** A client behind a relay, once it is connected, and its store. */
    async function behindRelay(deadlineMs?: number) {
      const relay = await startRelay(database.redis.url)
      const own = opened(relay.url)
      await expect.poll(() => own.isReady()).toBe(true)
      const store = storeOf(own.client, deadlineMs)
      await store.decide([take(row(newSubject(), { terms }))]) // loads the script
      onTestFinished(() => relay.stop())
      return { relay, store, ...own }
    }

    function opened(url = database.redis.url) {
      const one = open(url)
      onTestFinished(one.close)
      return one
    }

    test('limits requests, and shares their counters with the REST API.', async () => {
      const { client, isReady } = opened()
      const env = { ...database.env, SLUICE_SECRET: 'a-secret' }
      const store = redis(client)
      const remoteAddress = `203.0.113.${name.length}`
      const statuses: number[] = []
      for (const sluice of [createSluice({ ...options, store }), createSluice(options)]) {
        for (let count = 0; count < 2; count++) {
          const { response } = await sluice.check(new Request('http://a/'), { env, remoteAddress })
          statuses.push(response?.status ?? 200)
        }
      }
      expect(statuses).toEqual([200, 200, 429, 429])
      expect(isReady()).toBe(true)
    })

    test('sends one EVALSHA for a decision, and the script again when Redis has lost it.', async () => {
      const store = storeOf(opened().client)
      await store.decide([charge()])
      const commands = async () => {
        const stats = String(await admin.sendCommand(['INFO', 'commandstats']))
        return ['eval', 'evalsha'].map((command) =>
          Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
        )
      }
      const before = await commands()
      for (let count = 0; count < 3; count++) await store.decide([charge()])
      const after = await commands()
      expect(after.map((count, index) => count - before[index]!)).toEqual([0, 3])
      await admin.sendCommand(['SCRIPT', 'FLUSH'])
      await store.decideEach([[charge()], [charge()]], {})
      expect(await counted()).toBe(6)
    })

    test('sends no call after its deadline: one that waits for the first connection is not charged.', async () => {
      const relay = await startRelay(database.redis.url, { does: 'hold' })
      onTestFinished(() => relay.stop())
      const store = storeOf(opened(relay.url).client)
      // A client of redis writes what it has in its queue together with the handshake.
      await expect.poll(() => relay.accepted).toBe(1)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const late = store.decide([charge()], { deadlineMs: 50 }).catch((error) => error)
      const inTime = store.decide([take(row(newSubject(), { terms }))], { deadlineMs: 10_000 })
      await new Promise((resolve) => setTimeout(resolve, 100))
      relay.release()
      expect((await inTime).states[0]![0]!.allowed).toBe(true)
      expect(await late).toMatchObject({ code: 'timeout', cause: 'not sent' })
      expect(await counted()).toBe(0)
    })

    const saysReady = name !== POOL

    test.runIf(saysReady)(
      'fails a call at once while its connection is lost, and decides again after it.',
      async () => {
        const { relay, store, isReady } = await behindRelay()
        await relay.stop()
        await expect.poll(() => isReady()).toBe(false)
        const failing = store.decide([charge()])
        await expect(failing).rejects.toMatchObject({ code: 'unreachable', cause: 'not sent' })
        const again = await startRelay(database.redis.url, {
          port: Number(new URL(relay.url).port),
        })
        onTestFinished(() => again.stop())
        await expect.poll(() => isReady()).toBe(true)
        await store.decide([charge()])
        expect(await counted()).toBe(1)
      },
    )

    test.runIf(!saysReady)(
      'fails a call at its deadline while its connections are lost, uncharged, and decides again after it.',
      async () => {
        const { relay, client } = await behindRelay()
        await relay.stop()
        const brief = storeOf(client, 100)
        await expect(brief.decide([charge()])).rejects.toMatchObject({
          code: expect.stringMatching(/^(timeout|unreachable)$/),
        })
        const again = await startRelay(database.redis.url, {
          port: Number(new URL(relay.url).port),
        })
        onTestFinished(() => again.stop())
        await vi.waitFor(() => storeOf(client).decide([take(row(newSubject(), { terms }))]), 20_000)
        expect(await counted()).toBe(0)
      },
    )

    test.each([
      ['-LOADING Redis is loading the dataset in memory', 'redis-error'],
      ["-READONLY You can't write against a read only replica.", 'redis-error'],
      ["-OOM command not allowed when used memory > 'maxmemory'.", 'database-full'],
      ['-NOAUTH Authentication required.', 'unauthorized'],
      ['-MOVED 1 127.0.0.1:1', 'redis-error'],
      ['-CLUSTERDOWN Hash slot not served', 'redis-error'],
    ] as const)('reports the answer %s as %s.', async (answer, code) => {
      const { relay, store } = await behindRelay()
      relay.does = answer
      await expect(store.decide([charge()])).rejects.toMatchObject({ code })
    })

    test('reports a Redis that hangs as a timeout.', async () => {
      const own = await startRedis({ own: true })
      onTestFinished(() => own.stop())
      const pause = await openConnection(own.url)
      onTestFinished(() => pause.destroy())
      const { client, isReady } = opened(own.url)
      await expect.poll(() => isReady()).toBe(true)
      const store = storeOf(client, 50)
      await storeOf(client).decide([charge()]) // a pool says that it is ready before its first connection
      await pause.sendCommand(['CLIENT', 'PAUSE', '60000', 'ALL'])
      await expect(store.decide([charge()])).rejects.toMatchObject({ code: 'timeout' })
    })

    test('decides local shares when Redis is killed, and its counts when it is back.', async () => {
      const port = await freePort()
      const first = await startRedis({ own: true, port })
      const { client, isReady } = opened(first.url)
      const store = redis(client)
      const sluice = createSluice({ ...options, store })
      const env = { SLUICE_SECRET: 'a-secret' }
      const decide = async () => {
        const runtime = { env, remoteAddress: '203.0.113.9' }
        return (await sluice.check(new Request('http://a/'), runtime)).decision
      }
      await expect.poll(() => isReady()).toBe(true)
      expect(await decide()).toMatchObject({ allowed: true, reason: 'within-limit' })
      await first.stop()
      if (saysReady) await expect.poll(() => isReady()).toBe(false)
      expect(await decide()).toMatchObject({ reason: 'store-error' })
      const second = await startRedis({ own: true, port })
      onTestFinished(() => second.stop())
      await expect.poll(async () => (await decide()).reason).not.toBe('store-error')
    })
  },
)

/** Clients of one server, and of Sentinels that name it. */
const servers = Object.entries({ ...redisClients, ...poolClients }).map(
  ([name, open]) => [name, 'a server', open] as const,
)
const sentinels = Object.entries(sentinelClients).map(
  ([name, open]) => [name, 'Sentinels', (url: string) => open([url])] as const,
)
describe.each([...servers, ...sentinels])('A client of %s for %s', (_, kind, open) => {
  test.each([
    ['lose-reply', 1],
    ['lose-call', 0],
  ] as const)(
    'does not send a call again after its connection is lost (%s): it is charged %i times.',
    async (does, times) => {
      const relay = await startRelay(database.redis.url)
      onTestFinished(() => relay.stop())
      let { url } = relay
      if (kind === 'Sentinels') {
        const sentinel = await startSentinel(new URL(url).port, 1, 60_000)
        onTestFinished(sentinel.stop)
        url = sentinel.url
        await vi.waitFor(() => ask(url, 'PING'), { timeout: 10_000 })
      }
      const { client, isReady, close } = open(url)
      onTestFinished(close)
      await vi.waitFor(() => expect(isReady()).toBe(true), { timeout: 10_000 })
      const store = storeOf(client)
      await store.decide([take(row(newSubject(), { terms }))]) // loads the script
      relay.does = does
      const deciding = store.decide([charge()])
      await expect(deciding).rejects.toMatchObject({ code: 'unreachable' })
      // What is in a queue of the client is sent before this.
      await vi.waitFor(() => store.decide([take(row(newSubject(), { terms }))]), {
        timeout: 10_000,
      })
      expect(await counted()).toBe(times)
    },
  )
})

test('A client that the app has not connected is named in the error.', async () => {
  const { createClient } = await import('redis')
  const store = storeOf(createClient({ url: database.redis.url }))
  await expect(store.decide([charge()])).rejects.toThrow('the client is not connected')
})

test('A value that is no client is refused, and its text is not shown.', () => {
  expect(() => redis('redis://:secret@host' as never)).toThrow(
    new ConfigError([
      {
        path: 'store',
        expected: 'a client of the package redis or ioredis',
        got: 'a value of type string',
      },
    ]),
  )
})
