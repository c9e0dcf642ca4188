import { expect, test } from 'vitest'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { cluster } from '../../../../src/features/cluster/index.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { createGateway, rateLimiter } from '../../../../src/index.ts'
import { durableObjects } from '../../../../src/stores/durable-objects/index.ts'
import { createObjectStore } from '../../../../src/stores/durable-objects/objects.ts'
import type { ObjectNamespace } from '../../../../src/stores/durable-objects/runtime.ts'

const policies = [{ name: 'per-ip', limit: 5, window: '1m' }] satisfies ConfigOptions['policies']
const store = durableObjects()

test.each([
  ['cluster()', { use: [cluster()] }, /^use\[0\]: expected no cluster\(\)/],
  [
    'the clock of the Worker',
    { clock: 'edge' },
    /^clock: expected "store" with durableObjects\(\)/,
  ],
  ['live policies in Redis', { live: { from: 'redis' } }, /^live\.from: expected "kv:<binding>"/],
] as const)('%s is an error at start.', (_, settings, message) => {
  expect(() => rateLimiter({ store, policies, ...(settings as object) })).toThrow(message)
})

test('The health of a Worker without the binding names it.', async () => {
  const health = async (env: object) => {
    const { fetch } = createGateway({ store, policies, origin: 'http://127.0.0.1:9' })
    const context = { waitUntil() {}, passThroughOnException() {} }
    const response = await fetch(new Request('http://worker/_sluice/health'), env, context as never)
    return response.json()
  }
  expect(await health({})).toMatchObject({
    status: 'misconfigured',
    problems: [
      {
        code: 'not-configured',
        detail: 'Bind the class SluiceSubject as SLUICE_SUBJECT in the configuration of wrangler.',
      },
    ],
  })
  expect(await health({ SLUICE_SUBJECT: {} })).toMatchObject({ status: 'ok' })
})

test('Policies, leases of policies and live policies in KV are valid.', () => {
  expect(() =>
    parseConfig({ store, policies, live: { from: 'kv:POLICIES' } }, defaultFields),
  ).not.toThrow()
})

test.each([
  [{ binding: 'not a name' }, /^binding: expected the name of a binding, like "SLUICE_SUBJECT"/],
  [{ locationHint: 'mars' }, /^locationHint: expected one of wnam, /],
  [{ jurisdiction: 'de' }, /^jurisdiction: expected one of eu, us, /],
  [{ hint: 'weur' }, /^hint: /],
])('The options %j are an error.', (options, message) => {
  expect(() => durableObjects(options as never)).toThrow(message)
})

const take: StoreRequest[] = [
  {
    mode: 'take',
    limits: [
      {
        subject: 'alice',
        cost: 1,
        terms: {
          tag: 't',
          algorithm: 'fixed-window',
          limit: 5,
          windowMs: 1000,
          burst: 5,
          align: 'clock',
          localShare: 1,
        },
      },
    ],
  },
]

const state = { allowed: true, remaining: 4, retryAfterMs: 0, resetAfterMs: 9, nextAfterMs: 9 }
const reply = { decidedAt: 1, states: [[state]] }

/** A binding whose objects answer by a function. It records the names and the calls. */
function binding(answer: (body: string, call: number) => Response | Promise<Response>) {
  const names: unknown[] = []
  const bodies: string[] = []
  const objects: ObjectNamespace = {
    idFromName: (name) => name,
    get: (id, options) => ({
      fetch: async (_, { body }) => {
        names.push([id, options])
        bodies.push(body)
        return answer(body, bodies.length)
      },
    }),
    jurisdiction: () => objects,
  }
  return { objects, names, bodies }
}

const failing = (properties: object) =>
  binding(() => {
    throw Object.assign(new Error('broken'), properties)
  })
const storeOn = (objects: ObjectNamespace | undefined, more = {}) =>
  createObjectStore({ objects, binding: 'SLUICE_SUBJECT', batching: false, ...more })

test('Without the binding every decision names it.', async () => {
  await expect(storeOn(undefined).decide(take)).rejects.toMatchObject({
    code: 'not-configured',
    message: 'not-configured: add a binding SLUICE_SUBJECT of the class SluiceSubject',
  })
})

test('An object is named by its subject, after the namespace, and gets the hint of its place.', async () => {
  const { objects, names } = binding(() => Response.json({ replies: [reply] }))
  await storeOn(objects).decide(take)
  await storeOn(objects, { namespace: 'staging', locationHint: 'weur' }).decide(take)
  expect(names).toEqual([
    ['alice', {}],
    ['staging:alice', { locationHint: 'weur' }],
  ])
})

test('A call to a restarted object is sent once more, with the same id.', async () => {
  const { objects, bodies } = binding((_, call) => {
    if (call === 1) throw Object.assign(new Error('reset'), { retryable: true })
    return Response.json({ replies: [reply] })
  })
  await storeOn(objects).decide(take)
  expect(bodies).toHaveLength(2)
  expect(bodies[0]).toBe(bodies[1])
})

test.each([
  ['an overloaded object', { retryable: true, overloaded: true }, 1, 'unreachable'],
  ['an object that stays away', { retryable: true }, 2, 'unreachable'],
  ['a connection that fails', {}, 1, 'unreachable'],
  [
    'the daily limits of the free plan',
    { message: 'Exceeded allowed rows written in Durable Objects free tier.' },
    1,
    'over-quota',
  ],
  ['a full storage', { message: 'database or disk is full: SQLITE_FULL' }, 1, 'database-full'],
])('%s is an error of the store.', async (_, properties, calls, code) => {
  const { objects, bodies } = failing(properties)
  await expect(storeOn(objects).decide(take)).rejects.toMatchObject({ code })
  expect(bodies).toHaveLength(calls)
  const [reply] = await storeOn(objects).decideEach([take], {})
  expect(reply).toMatchObject({ code })
})

test.each([
  'Hello',
  'null',
  '7',
  '[]',
  '{}',
  '{"replies":[]}',
  '{"replies":[null]}',
  '{"replies":[{"decidedAt":1}]}',
  '{"replies":[{"decidedAt":1,"states":[]}]}',
  '{"replies":[{"decidedAt":1,"states":[[]]}]}',
  '{"replies":[{"decidedAt":1,"states":[[{}]]}]}',
  JSON.stringify({ replies: [{ ...reply, decidedAt: '1' }] }),
  JSON.stringify({ replies: [reply, reply] }),
])('The answer %s, which is not that of the class, is a bad reply.', async (text) => {
  const { objects } = binding(() => new Response(text))
  await expect(storeOn(objects).decide(take)).rejects.toMatchObject({ code: 'bad-reply' })
  const [each] = await storeOn(objects).decideEach([take], {})
  expect(each).toMatchObject({ code: 'bad-reply' })
})

test('An answer with an error of HTTP is a bad reply.', async () => {
  const { objects } = binding(() => Response.json({ replies: [reply] }, { status: 500 }))
  await expect(storeOn(objects).decide(take)).rejects.toMatchObject({ code: 'bad-reply' })
})
