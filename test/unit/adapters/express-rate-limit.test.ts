/** The store for express-rate-limit, in express-rate-limit itself and beside its own store. */
import express from 'express'
import { MemoryStore, type Options, rateLimit, type Store } from 'express-rate-limit'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { SluiceStore } from '../../../src/adapters/express-rate-limit.ts'
import { useDatabase } from '../../support/database.ts'
import { listen } from '../../support/node-servers.ts'

const { env } = useDatabase()
afterEach(() => void vi.useRealTimers())

let namespaces = 0
const newNamespace = () => `express-${++namespaces}`
const store = (namespace = newNamespace(), prefix?: string) =>
  new SluiceStore({
    env,
    namespace,
    deadline: '10s',
    clock: 'edge',
    ...(prefix !== undefined && { prefix }),
  })

/** An app that answers with the status in the query, by default 200. */
async function start(limiter: Partial<Options>) {
  const app = express()
  const limit = rateLimit({ windowMs: 60_000, limit: 2, standardHeaders: 'draft-8', ...limiter })
  app.use(limit)
  app.get('/', (request, response) => void response.sendStatus(Number(request.query.status ?? 200)))
  const url = await listen(app.listen(0, '127.0.0.1'))
  const get = async (query = '') => {
    const { status, headers } = await fetch(`${url}/${query}`)
    return { status, field: headers.get('ratelimit') }
  }
  return { get, limit }
}

describe('express-rate-limit', () => {
  test('refuses above the limit, counted over all processes, and reports what is left.', async () => {
    const namespace = newNamespace()
    const [one, other] = await Promise.all(
      [0, 1].map(() => start({ store: store(namespace), identifier: 'app' })),
    )
    expect(await one!.get()).toMatchObject({
      status: 200,
      field: expect.stringMatching(/r=1; t=60/),
    })
    expect((await other!.get()).status).toBe(200)
    expect((await one!.get()).status).toBe(429)
    expect((await other!.get()).status).toBe(429)
  })

  test('takes back what does not count.', async () => {
    const { get } = await start({ store: store(), skipFailedRequests: true })
    for (let count = 0; count < 4; count += 1) {
      expect((await get('?status=404')).status).toBe(404)
      await new Promise((resolve) => setTimeout(resolve, 20)) // decremented after the response
    }
    expect((await get()).status).toBe(200)
  })

  test('tells and resets the hits of a client.', async () => {
    const { get, limit } = await start({ store: store(), keyGenerator: () => 'one' })
    expect(await limit.getKey('one')).toBeUndefined()
    for (const status of [200, 200, 429]) expect((await get()).status).toBe(status)
    expect(await limit.getKey('one')).toMatchObject({ totalHits: 3 })
    limit.resetKey('one')
    await expect.poll(() => limit.getKey('one')).toBeUndefined()
    expect((await get()).status).toBe(200)
  })

  test('is content with the store: it logs no misuse.', async () => {
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    const namespace = newNamespace()
    const app = express()
    for (const prefix of ['burst:', 'hour:']) {
      app.use(rateLimit({ store: store(namespace, prefix), limit: 5, windowMs: 60_000 }))
    }
    app.get('/', (_, response) => void response.send('ok'))
    const url = await listen(app.listen(0, '127.0.0.1'))
    expect((await fetch(url)).headers.get('x-ratelimit-remaining')).toBe('4')
    expect(errors).not.toHaveBeenCalled()
  })
})

test('Any sequence of calls counts as in the store of express-rate-limit.', async () => {
  const call = fc.record({
    method: fc.constantFrom('increment', 'increment', 'increment', 'decrement', 'resetKey', 'get'),
    key: fc.constantFrom('a', 'b'),
    afterMs: fc.constantFrom(0, 1, 700, 20_000, 60_000),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 15 }), async (calls) => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
      const reference = new MemoryStore()
      const own: Store = store()
      const options = { windowMs: 60_000 } as Options
      for (const one of [reference, own]) one.init!(options)
      const hits = new Map<string, { count: number; until: number }>()
      for (const { method, key, afterMs } of calls) {
        vi.setSystemTime(Date.now() + afterMs)
        const window = hits.get(key)
        const isOpen = window !== undefined && Date.now() < window.until
        if (method === 'increment') {
          const [expected, got] = [await reference.increment(key), await own.increment(key)]
          expect(got).toEqual(expected)
          hits.set(key, { count: got.totalHits, until: got.resetTime!.getTime() })
        } else if (method === 'get') {
          // The reference also returns windows that have ended.
          const expected = isOpen ? await reference.get(key) : undefined
          expect(await own.get!(key)).toEqual(expected)
        } else if (method === 'resetKey') {
          for (const one of [reference, own]) await one.resetKey(key)
          hits.delete(key)
        } else if (isOpen && window.count > 1) {
          // A window without hits is forgotten, and opens anew.
          for (const one of [reference, own]) await one.decrement(key)
          window.count -= 1
        }
      }
      reference.shutdown()
    }),
    { numRuns: 60 },
  )
})

test('The process counts while Redis does not answer.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const dead = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9', UPSTASH_REDIS_REST_TOKEN: 'none' }
  const own = new SluiceStore({ env: dead })
  own.init({ windowMs: 60_000 })
  expect(await own.increment('a')).toMatchObject({ totalHits: 1 })
  const { totalHits, resetTime } = await own.increment('a')
  expect(totalHits).toBe(2)
  expect(resetTime!.getTime()).toBeGreaterThan(Date.now())
  expect(await own.get('a')).toMatchObject({ totalHits: 2 })
  expect(await own.get('b')).toBeUndefined()
  await expect(own.resetKey('a')).rejects.toThrow('unreachable')
})

test('A store that no limiter uses says so.', async () => {
  await expect(store().increment('a')).rejects.toThrow('pass it to rateLimit({ store })')
})

test.each([0, 0.5, 1, 1_000.5, 400 * 86_400_000, Infinity])(
  'A window of %d ms counts for that time, rounded up to whole milliseconds.',
  async (windowMs) => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const own = store()
    own.init({ windowMs })
    await own.increment('a')
    const { totalHits, resetTime } = await own.increment('a')
    expect(totalHits).toBe(2)
    const longest = Math.min(Math.max(1, Math.ceil(windowMs)), 2 ** 51)
    expect(resetTime!.getTime() - Date.now()).toBe(longest)
  },
)
