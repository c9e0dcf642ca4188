/** A store that moves shards between three databases, each a real Redis behind one bridge. */
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { StoreError } from '../../src/base/errors.ts'
import { shards } from '../../src/shards/index.ts'
import { moveKey, nameOf, placesOf } from '../../src/shards/move/places.ts'
import { createShards } from '../../src/shards/split-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createTransport } from '../../src/store/upstash/transport.ts'
import { createUpstashStore } from '../../src/store/upstash/upstash.ts'
import { newSubject } from './subjects.ts'

export const OLD = ['eu-1', 'eu-2']
export const NEW = ['eu-1', 'eu-2', 'eu-3']

/** The transport of a test. It may fail before or after a request reaches the database. */
export type Wire = ReturnType<typeof createTransport>

/** Starts three databases for the tests of one file, and empties them before each test. */
export function useMovingShards() {
  const redis: RunningRedis[] = []
  let bridge: Bridge

  beforeAll(async () => {
    redis.push(...(await Promise.all(NEW.map(() => startRedis()))))
    bridge = await startBridge({ redis: redis.map(({ url }, n) => ({ url, token: NEW[n]! })) })
  })
  afterAll(async () => {
    await bridge.close()
    await Promise.all(redis.map((one) => one.stop()))
  })

  const wireTo = (name: string): Wire => createTransport(bridge.url, name)
  /** Sends one command to a database. */
  async function send(name: string, ...command: unknown[]): Promise<unknown> {
    const [answer] = await wireTo(name)([command], AbortSignal.timeout(10_000))
    if ('error' in answer!) throw new Error(answer.error)
    return answer!.result
  }
  const flush = () => Promise.all(NEW.map((name) => send(name, 'FLUSHALL')))
  beforeEach(flush)

  /** An isolate that knows both layouts. Its deadline is long, because the machine may be busy. */
  function isolate({ from = OLD, to = NEW, away = [] as string[] } = {}) {
    const background: Promise<unknown>[] = []
    const failures: (StoreError | undefined)[] = []
    const layout = shards(to, { moveFrom: from })
    const databases = layout.databases.map((name) => {
      const url = away.includes(name) ? 'http://127.0.0.1:9' : bridge.url
      const guarded = layout.scriptFor(name, undefined)
      const store = createUpstashStore({ url, token: name, deadlineMs: 20_000, guarded })
      return { name, url, token: name, store, isOpen: () => false }
    })
    const store = layout.createStore({
      ...{ databases, namespace: undefined },
      onRefund: (_, error) => void failures.push(error),
    }) as Store
    const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
    const options = { deadlineMs: 15_000, waitUntil }
    return {
      failures,
      settled: () => Promise.all(background),
      decide: (...[list, more]: Parameters<Store['decide']>) =>
        store.decide(list, { ...options, ...more }),
      decideEach: (...[lists, more]: Parameters<Store['decideEach']>) =>
        store.decideEach(lists, { ...options, ...more }),
    }
  }

  /** An isolate that knows one layout only. */
  const plain = (names: string[]) =>
    createShards(
      names.map((name) => ({
        name,
        store: createUpstashStore({ url: bridge.url, token: name, deadlineMs: 20_000 }),
      })),
    )

  /** Lets the move begin, as the tool does. */
  const begin = (from = OLD, to = NEW) =>
    Promise.all(from.map((name) => send(name, 'SET', moveKey(), nameOf({ from, to }))))

  return { send, wireTo, flush, isolate, plain, begin, url: () => bridge.url, redis }
}

/** A new subject with these places. */
export function subjectFrom(from: string, to: string, [old, now] = [OLD, NEW]): string {
  const placeOf = placesOf({ from: old!, to: now! })
  for (;;) {
    const subject = newSubject()
    const places = placeOf(subject)
    if (places.from === from && places.to === to) return subject
  }
}
