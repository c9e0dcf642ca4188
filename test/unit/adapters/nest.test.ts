/** The storage for the throttler of Nest, in its guard and beside its own storage. */
import { Reflector } from '@nestjs/core'
import { ThrottlerGuard, type ThrottlerStorage, ThrottlerStorageService } from '@nestjs/throttler'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { SluiceThrottlerStorage } from '../../../src/adapters/nest.ts'
import { useDatabase } from '../../support/database.ts'

const { env } = useDatabase()
afterEach(() => void vi.useRealTimers())

let namespaces = 0
const newNamespace = () => `nest-${++namespaces}`
const storage = (namespace = newNamespace()) =>
  new SluiceThrottlerStorage({ env, namespace, deadline: '10s', clock: 'edge' })

/** A guard of Nest, with its handler. Returns the header fields of the response, or throws. */
async function guard(own: ThrottlerStorage) {
  const throttlers = [{ ttl: 10_000, limit: 2, blockDuration: 30_000 }]
  const one = new ThrottlerGuard({ throttlers }, own, new Reflector())
  await one.onModuleInit()
  class Cats {}
  return async (ip: string) => {
    const headers: Record<string, unknown> = {}
    const response = {
      header(name: string, value: unknown) {
        headers[name] = value
      },
    }
    const context = {
      getHandler: () => guard,
      getClass: () => Cats,
      switchToHttp: () => ({
        getRequest: () => ({ ip, headers: {} }),
        getResponse: () => response,
      }),
    }
    const passes = await one
      .canActivate(context as never)
      .catch((error: { getStatus: () => number }) => error.getStatus())
    return { passes, headers }
  }
}

describe('The guard of Nest', () => {
  test('refuses above the limit, counted over all processes, until the block ends.', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const namespace = newNamespace()
    const [one, other] = [await guard(storage(namespace)), await guard(storage(namespace))]
    expect(await one('203.0.113.7')).toMatchObject({
      passes: true,
      headers: { 'X-RateLimit-Limit': 2, 'X-RateLimit-Remaining': 1, 'X-RateLimit-Reset': 10 },
    })
    expect((await other('203.0.113.7')).passes).toBe(true)
    expect(await one('203.0.113.7')).toEqual({ passes: 429, headers: { 'Retry-After': 30 } })
    expect((await other('203.0.113.8')).passes).toBe(true)
    vi.setSystemTime(Date.now() + 29_999)
    expect(await other('203.0.113.7')).toEqual({ passes: 429, headers: { 'Retry-After': 1 } })
    vi.setSystemTime(Date.now() + 1)
    expect((await one('203.0.113.7')).passes).toBe(true)
  })
})

const afterABlock = [0, 0, 0, 0, 1_000].map((afterMs) => ({ key: 'a', name: 'default', afterMs }))

test.each([0, 1_000, 10_000, 25_000])(
  'Any sequence of hits counts as in the storage of Nest, with a block of %i ms.',
  async (blockDuration) => {
    const hit = fc.record({
      key: fc.constantFrom('a', 'a', 'b'),
      name: fc.constantFrom('default', 'default', 'short'),
      afterMs: fc.constantFrom(0, 1, 500, 999, 1_000, 4_000, 10_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(hit, { minLength: 1, maxLength: 20 }), async (hits) => {
        vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
        const reference = new ThrottlerStorageService()
        const own = storage()
        for (const { key, name, afterMs } of hits) {
          vi.setSystemTime(Date.now() + afterMs)
          // As the guard does: its keys contain the name.
          const all = [`${name}-${key}`, 10_000, 3, blockDuration, name] as const
          const { timeToExpire, ...expected } = await reference.increment(...all)
          const got = await own.increment(...all)
          const { totalHits, isBlocked, timeToBlockExpire } = expected
          // During a block the reference forgets the hits that expire, and no one reads their number.
          expect(got).toMatchObject(
            isBlocked
              ? { isBlocked, timeToBlockExpire, totalHits: 4 }
              : { isBlocked, timeToBlockExpire: 0, totalHits },
          )
          expect(got.timeToExpire).toBeGreaterThan(0)
        }
        reference.onApplicationShutdown()
      }),
      { numRuns: 25, examples: [[afterABlock]] },
    )
  },
)

test('Concurrent hits of two processes admit exactly the limit, and each of the others is blocked.', async () => {
  const namespace = newNamespace()
  const processes = [storage(namespace), storage(namespace)]
  const records = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      processes[index % 2]!.increment('one', 60_000, 8, 60_000, 'default'),
    ),
  )
  expect(records.filter(({ isBlocked }) => !isBlocked)).toHaveLength(8)
})

test('The process counts while Redis does not answer.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const dead = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9', UPSTASH_REDIS_REST_TOKEN: 'none' }
  const own = new SluiceThrottlerStorage({ env: dead })
  for (const block of [0, 30_000]) {
    const records = []
    for (let hit = 0; hit < 3; hit++)
      records.push(await own.increment('a', 60_000, 2, block, `${block}`))
    expect(records.map(({ isBlocked }) => isBlocked)).toEqual([false, false, true])
    expect(records.map(({ totalHits }) => totalHits)).toEqual([1, 2, 3])
    expect(records[2]!.timeToBlockExpire).toBeGreaterThan(0)
  }
})

test('A limit of 0 admits nothing.', async () => {
  expect(await storage().increment('a', 5_000, 0, 0, 'default')).toMatchObject({
    isBlocked: true,
    timeToBlockExpire: 5,
  })
})

test.each([
  [1_000.5, 1.5, 0, 1],
  [0.5, 2.9, 0.5, 2],
  [0, 3, -1, 3],
  [Infinity, 2, Infinity, 2],
  [400 * 86_400_000, 20_000, 0.1, 5],
  [1_000, Infinity, 0, 5],
  [1_000, 2 ** 60, 1_000.5, 5],
  [Number.MAX_VALUE, 1e300, 0, 5],
])(
  'A ttl of %d ms, a limit of %d and a block of %d ms admit the next stricter limit: %i of five hits.',
  async (ttl, limit, block, admitted) => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const own = storage()
    const records = []
    for (let hit = 0; hit < 5; hit++)
      records.push(await own.increment('a', ttl, limit, block, 'default'))
    expect(records.filter(({ isBlocked }) => !isBlocked)).toHaveLength(admitted)
    for (const { timeToExpire, totalHits } of records) {
      expect(timeToExpire).toBeGreaterThan(0)
      expect(totalHits).toBeLessThanOrEqual(5)
    }
  },
)
