import { Redis } from '@upstash/redis'
import { Redis as WorkersRedis } from '@upstash/redis/cloudflare'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { createUpstashReader } from '../../../src/core/connection/upstash/upstash.ts'
import { databaseIn } from '../../../src/core/decide/database.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { exactOptions, upstash } from '../../../src/stores/upstash.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()
const connection = () => ({ url: database.bridge.url, token: 'token' })
const options = { clientAddress: 'socket', deadline: '10s' } as const
const policies: PolicyOptions[] = [{ name: 'per-ip', limit: 2, window: '1h' }]
const request = () => new Request('http://localhost/')

/** The statuses of five requests of a client. */
async function statuses(sluice: ReturnType<typeof createSluice>, remoteAddress: string, env = {}) {
  const results: number[] = []
  for (let count = 0; count < 5; count += 1) {
    const { response } = await sluice.check(request(), { env, remoteAddress })
    results.push(response?.status ?? 200)
  }
  return results
}
const LIMITED = [200, 200, 429, 429, 429]

describe('the client of the app', () => {
  test('A client limits requests, without the URL and the token in the environment.', async () => {
    const store = upstash(new Redis({ ...connection(), ...exactOptions }))
    const sluice = createSluice({ ...options, store, policies })
    expect(await statuses(sluice, '203.0.113.1')).toEqual(LIMITED)
  })

  test('A function gets the environment of the request, and is called once.', async () => {
    const seen: object[] = []
    const store = upstash((env: { URL: string }) => {
      seen.push(env)
      return new WorkersRedis({ url: env.URL, token: 'token', ...exactOptions })
    })
    const sluice = createSluice({ ...options, store, policies })
    const env = { UPSTASH_REDIS_REST_URL: 'http://unused', URL: connection().url }
    expect(await statuses(sluice, '203.0.113.2', env)).toEqual(LIMITED)
    expect(seen).toEqual([expect.objectContaining(env)])
  })

  test('It shares its counters with the built-in transport.', async () => {
    const store = upstash((env) => WorkersRedis.fromEnv(env, exactOptions))
    const client = createSluice({ ...options, store, policies })
    const builtIn = createSluice({ ...options, policies })
    const { env } = database
    const secret = { ...env, SLUICE_SECRET: 'a-secret' }
    for (const sluice of [client, builtIn]) {
      const { allowed } = await sluice.check(request(), {
        env: secret,
        remoteAddress: '203.0.113.3',
      })
      expect(allowed).toBe(true)
    }
    expect(await statuses(client, '203.0.113.3', secret)).toEqual(new Array(5).fill(429))
  })

  test('A lost script is sent again, and several calls share a request.', async () => {
    const store = upstash(new Redis({ ...connection(), ...exactOptions }))
    const sluice = createSluice({ ...options, store, policies })
    const wait = { waitUntil: () => {} }
    const burst = (n: number) =>
      Promise.all(
        Array.from({ length: 20 }, async () => {
          const runtime = { remoteAddress: `203.0.113.1${n}`, ...wait }
          return (await sluice.check(request(), runtime)).decision.reason
        }),
      )
    const counts = (reasons: string[]) =>
      ['within-limit', 'limited'].map((name) => reasons.filter((one) => one === name).length)
    expect(counts(await burst(1))).toEqual([2, 18])
    await fetch(`${connection().url}/script/flush`, { headers: { authorization: 'Bearer token' } })
    expect(counts(await burst(2))).toEqual([2, 18])
  })
})

describe('options that make limits inexact', () => {
  const problemsOf = (options: object) => {
    try {
      upstash(new Redis({ ...connection(), ...exactOptions, ...options }))
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError)
      return (error as ConfigError).problems.map(({ path, got }) => [path.split(' ')[3], got])
    }
    return []
  }

  test.each([
    ['retry', { retry: false }, '{ retries: 1 }'],
    ['retry', { retry: undefined }, '{ retries: 5 }'],
    ['automaticDeserialization', { automaticDeserialization: true }, 'true'],
    ['automaticDeserialization', { automaticDeserialization: undefined }, 'true'],
    ['enableAutoPipelining', { enableAutoPipelining: true }, 'true'],
    ['readYourWrites', { readYourWrites: true }, 'true'],
    ['signal', { signal: undefined }, 'undefined'],
    ['signal', { signal: AbortSignal.timeout(1_000_000) }, '[object AbortSignal]'],
  ])('The error names the option %s with %j.', (option, options, got) => {
    expect(problemsOf(options)).toEqual([[option, got]])
  })

  test('The message says what to write instead.', () => {
    expect(() => upstash(new Redis({ ...connection(), ...exactOptions, retry: false }))).toThrow(
      'store: upstash(…), option retry of the client: expected { retries: 0 }, as in exactOptions, got { retries: 1 }',
    )
    expect(() => upstash({} as never)).toThrow('expected a client of @upstash/redis')
  })

  test('A client that a function returns is checked at the first request.', async () => {
    const sluice = createSluice({
      ...options,
      store: upstash(() => new Redis(connection())),
      policies,
    })
    await expect(sluice.check(request(), { remoteAddress: '203.0.113.4' })).rejects.toThrow(
      'option retry of the client',
    )
  })

  test('A configuration without the result of upstash() is refused.', () => {
    const store = new Redis({ ...connection(), ...exactOptions })
    expect(() => createSluice({ policies, store } as never)).toThrow(
      "store: expected the result of upstash() from 'sluice/upstash'",
    )
    expect(() => createSluice({ policies, store: 'durable-objects' } as never)).toThrow(
      'or of durableObjects() from \'sluice/durable-objects\', got "durable-objects"',
    )
  })
})

test.each([
  ['without URL and token', {}],
  ['with a URL of the Redis protocol', { UPSTASH_REDIS_REST_URL: 'rediss://h:1' }],
])('A client %s is no database: the answer is 500.', async (_, env) => {
  const store = upstash((given) => WorkersRedis.fromEnv(given, exactOptions))
  const all = [{ ...policies[0]!, onStoreError: 'deny' as const }]
  const sluice = createSluice({ ...options, store, policies: all })
  const { response } = await sluice.check(request(), { env, remoteAddress: '203.0.113.5' })
  expect(response?.status).toBe(500)
  expect(await response?.text()).toContain('UPSTASH_REDIS_REST_TOKEN')
})

test('The error of a call contains no part of its command.', async () => {
  const message = 'ERR sluice: call: unexpected now, command was: ["evalsha","sha",1,"a-key"]'
  const client = new Redis({ ...connection(), ...exactOptions })
  client.evalsha = () => Promise.reject(Object.assign(new Error(message), { name: 'UpstashError' }))
  const send = upstash(client).connect({})
  expect(await send([['evalsha', 'sha', 1, 'a-key', 'x']], undefined, 300)).toEqual([
    { error: 'ERR sluice: call: unexpected now' },
  ])
})

test('A client without URL and token is not called.', () => {
  const store = upstash(() => new WorkersRedis({ url: '', token: '', ...exactOptions }))
  expect(() => store.connect({})).toThrow('not-configured')
})

test('The error of a function is reported, without the values of variables.', async () => {
  const env = {
    UPSTASH_REDIS_REST_URL: 'https://a.example.com',
    UPSTASH_REDIS_REST_TOKEN: 'a-secret-token',
  }
  const store = upstash(() => {
    throw new TypeError('no client for https://a.example.com with a-secret-token')
  })
  expect(databaseIn({ store }, env)).toEqual({
    problem: 'TypeError: no client for … with …',
  })
  const database = { ...databaseIn({ store }, env) }
  await expect(createUpstashReader(database)('a key')).rejects.toThrow(
    /^not-configured: .* \(TypeError: no client for … with …\)$/,
  )
  const failing = (error: unknown) =>
    upstash(() => {
      throw error
    })
  const problemOf = (error: unknown) => databaseIn({ store: failing(error) }, {}).problem
  expect(problemOf('a text')).toBe('Error: a text')
  expect(problemOf(new Error('x'.repeat(1000)))).toHaveLength(200)
})

test('A text in place of a client does not appear in the error.', () => {
  expect(() => upstash('AXX_secret_token' as never)).toThrow('got a value of type string')
})

test('A client without credentials is a store error, also as an instance.', () => {
  const store = upstash(new WorkersRedis({ url: '', token: '', ...exactOptions }))
  expect(() => store.connect({})).toThrow('not-configured')
})

test('Each request gets the error of a wrong client.', async () => {
  const store = upstash(() => new Redis(connection()))
  const sluice = createSluice({ ...options, store, policies })
  for (let count = 0; count < 2; count += 1) {
    const checking = sluice.check(request(), { remoteAddress: '203.0.113.6' })
    await expect(checking).rejects.toThrow('option retry of the client')
  }
})

test('An answer to fewer commands than were sent is a bad reply.', async () => {
  const client = new Redis({ ...connection(), ...exactOptions })
  const pipeline = { eval() {}, evalsha() {}, exec: async () => [{ result: 'x' }] }
  client.pipeline = () => pipeline as never
  const command = ['evalsha', 'sha', 1, 'key', 'x']
  const sending = upstash(client).connect({})([command, command], undefined, 300)
  await expect(sending).rejects.toMatchObject({ code: 'bad-reply' })
})
