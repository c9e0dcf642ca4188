/** A split store over three databases of one Redis. Each has another token. */
import { type Bridge, type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import { allParts } from '../../cli/replay/decide/script-parts.ts'
import type { Fallback } from '../../src/core/base/decision.ts'
import type { StoreError } from '../../src/core/base/errors.ts'
import type { Limit, Store, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { borrowRedis } from './borrow-redis.ts'
import { partOf, splitOver } from './split-store.ts'
import { newSubject } from './subjects.ts'
import { fallbackOver } from './with-fallback.ts'

/** The tokens of the databases. Each is a part of the store. */
export const names = ['part-1', 'part-2', 'part-3']

/** Starts the databases for the tests of one file. */
export function useSplitRedis() {
  let redis: RunningRedis
  let bridge: Bridge

  beforeAll(async () => {
    redis = await borrowRedis()
    const targets = names.map((token, index) => ({ url: `${redis.url}/${index}`, token }))
    bridge = await startBridge({ redis: targets })
  })
  afterAll(async () => {
    await bridge.close()
    await redis.stop()
  })

  const storeAt = (token: string, url: string | undefined = bridge.url) =>
    createUpstashStore({ url, token, deadlineMs: 10_000, lua: allParts })

  /** A split store, with its background work. The parts in `away` are not configured. */
  function newStore(away: string[] = [], wrap = (store: Store, _name: string) => store) {
    const background: Promise<unknown>[] = []
    const refunded: (string[] | StoreError)[] = []
    const onRefund = (subjects: string[], error?: StoreError) =>
      void refunded.push(error ?? subjects)
    const databaseOf = (name: string) => {
      const store = storeAt(name, away.includes(name) ? 'nowhere' : bridge.url)
      return fallbackOver(wrap(store, name), { onRefund }).store
    }
    const store = splitOver(names.map(databaseOf), onRefund)
    return {
      store,
      refunded,
      waitUntil: (promise: Promise<unknown>) => void background.push(promise),
      settled: () => Promise.all(background),
    }
  }

  /** The number of HTTP requests to each database while `run` runs. */
  const httpOf = async (run: () => Promise<unknown>) => {
    const before = bridge.stats()
    await run()
    const after = bridge.stats()
    return names.map((name) => after[name]!.http - before[name]!.http)
  }

  return { newStore, httpOf }
}

/** A new subject that belongs to this part. */
export function subjectAt(name: string): string {
  for (;;) {
    const subject = newSubject()
    if (names[partOf(subject, names.length)] === name) return subject
  }
}

export const policy: Limit['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 3,
  windowMs: 3_600_000,
  burst: 3,
  align: 'first-request',
  localShare: 1,
}
export const row = (subject: string, change: Partial<Limit> = {}): Limit => ({
  subject,
  terms: policy,
  cost: 1,
  ...change,
})
/** The same for a policy with this `onStoreError`. */
export const rowWith = (
  onStoreError: Fallback,
  subject: string,
  change: Partial<Limit> = {},
): Limit => {
  const limit = row(subject, change)
  return { ...limit, terms: { ...limit.terms, mode: 'enforce', onStoreError } }
}
export const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits })
export const follow = (...limits: Limit[]): StoreRequest => ({ mode: 'follow', limits })
export const left = ({ states }: StoreReply) => states.flat().map(({ remaining }) => remaining)
export const allowed = ({ states }: StoreReply) => states.flat().map(({ allowed }) => allowed)
export const peek = (store: Store, ...subjects: string[]) =>
  store.decide([{ mode: 'peek', limits: subjects.map((subject) => row(subject)) }]).then(left)
