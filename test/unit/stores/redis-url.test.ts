/** `REDIS_URL`: on Node, Bun and Deno a limiter without a store connects by itself. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import * as fc from 'fast-check'
import { freePort, type RunningRedis, startRedis } from 'sluice-upstash-bridge'
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { built, limits as builtLimits, denialCache, local } from '../../../src/built/limits.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import type { Limits } from '../../../src/limits/door.ts'
import { limits, parseLimitsConfig } from '../../../src/limits/limits.ts'
import type { LimitsOptions } from '../../../src/limits/terms.ts'
import { withRedisUrl } from '../../../src/stores/redis-url.ts'
import { useDatabase } from '../../support/database.ts'
import { property } from '../../support/law.ts'
import { type Connection, openConnection } from '../../support/redis-connection.ts'
import { newSubject } from '../../support/subjects.ts'
import { startRelay } from '../../support/tcp-relay.ts'

const database = useDatabase()
afterEach(() => void vi.unstubAllEnvs())

const SECRET = { SLUICE_SECRET: 'a-secret' }
const terms = { calls: { limit: 2, window: '1h', deadline: '10s' } } as const

/** Limits that count in the Redis of a URL, as `REDIS_URL` names it. */
const at = (url: string, more: LimitsOptions = {}) =>
  limits(terms, { env: { ...SECRET, REDIS_URL: url }, ...more })

/** The reasons of three calls. */
async function threeOf(quota: Limits<'calls'>, key: string = newSubject()) {
  const reasons: string[] = []
  for (let count = 0; count < 3; count++) reasons.push((await quota.limit('calls', key)).reason)
  return reasons
}
const LIMITED = ['within-limit', 'within-limit', 'limited']

describe('The variable', () => {
  test('is that of the process for each limiter of these runtimes, and one connection serves all.', async () => {
    const relay = await startRelay(database.redis.url)
    onTestFinished(() => relay.stop())
    vi.stubEnv('REDIS_URL', relay.url)
    const policies = [{ name: 'calls', limit: 2, window: '1h', key: 'header:x-key' }] as const
    const key = newSubject()
    const sluices = [1, 2].map(() =>
      createSluice({ policies: [...policies], namespace: 'url', deadline: '10s' }),
    )
    const reasons: string[] = []
    for (const sluice of [...sluices, ...sluices])
      reasons.push((await sluice.limit('calls', key)).reason)
    expect(reasons).toEqual(['within-limit', 'within-limit', 'limited', 'limited'])
    expect(await threeOf(limits(terms))).toEqual(LIMITED)
    expect(relay.accepted).toBe(1)
  })

  test('serves limits that are built, also as a variable of the options.', async () => {
    const config = parseLimitsConfig({ limits: terms, namespace: 'built' })
    const env = { ...SECRET, REDIS_URL: database.redis.url }
    const made = built({ names: ['calls'], config, features: [denialCache, local] })
    expect(await threeOf(builtLimits(made, { env }))).toEqual(LIMITED)
  })

  test('gives way to a store, and to the variables of a REST API.', () => {
    const store = { connect: () => async () => [] }
    expect(withRedisUrl({ store, env: { REDIS_URL: 'redis://localhost' } }).store).toBe(store)
    for (const name of ['UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN', 'KV_REST_API_URL']) {
      const env = { [name]: 'https://eu1.upstash.io', REDIS_URL: 'redis://localhost' }
      expect(withRedisUrl({ env })).toEqual({ env })
    }
    expect(withRedisUrl({ env: { REDIS_URL: '' } })).not.toHaveProperty('store')
  })

  test('is no error if Deno does not permit to read it.', () => {
    const env = Object.defineProperty({ UPSTASH_REDIS_REST_URL: '' }, 'REDIS_URL', {
      get() {
        throw new Error('NotCapable')
      },
    })
    expect(withRedisUrl({ env })).toEqual({ env })
  })

  test.each([
    ['localhost:6379', 'got a value that begins with no scheme'],
    ['https://eu1.upstash.io', 'got a value that begins with https://'],
    ['"redis://localhost"', 'got a value in quotes. Remove the quotes'],
    ['redis://', 'redis://USER:PASSWORD@HOST:PORT/NUMBER'],
    ['redis://localhost:port', 'redis://USER:PASSWORD@HOST:PORT/NUMBER'],
    ['redis://:hidden#1@localhost', 'such as %23 for #'],
    ['redis://u:12#hidden@localhost', 'such as %23 for #'],
    ['redis://:hidden/1@localhost', 'such as %23 for #, %2F for /'],
    ['redis://u:12/hidden@localhost', '%2F for /'],
    ['redis://u:12?hidden@localhost', '%3F for ?'],
    ['redis://u:12?hidden=1&db=1@localhost', '%3F for ?'],
    ['redis://:hidden%zz@localhost', '%25 for %'],
    ['redis://u%:41hidden@localhost', '%25 for %'],
    ['redis://localhost/hidden', 'NUMBER is that of the database'],
    ['redis://localhost?db=hidden', 'NUMBER is that of the database'],
    [
      'rediss://localhost?ssl_cert_reqs=hidden',
      'expected no parameter but db, got "ssl_cert_reqs"',
    ],
  ])('with the value %s is an error that says what is wrong, and no secret.', (url, text) => {
    const making = () => at(url)
    expect(making).toThrow('REDIS_URL: expected')
    expect(making).toThrow(text)
    expect(making).not.toThrow('hidden')
  })
})

const hasIPv6 = Object.values(networkInterfaces())
  .flat()
  .some((one) => one?.address === '::1')

describe('A URL', () => {
  let redis: RunningRedis
  let admin: Connection
  let runs = 0
  beforeAll(async () => {
    redis = await startRedis({ own: true, args: ['--bind', '127.0.0.1', '-::1'] })
    admin = await openConnection(redis.url)
    return async () => {
      admin.destroy()
      await redis.stop()
    }
  })

  property(
    'has any user, any password and any database, encoded.',
    fc.record({
      user: fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => !/[\s\0]/.test(text)),
      password: fc.string({ minLength: 1, unit: 'grapheme' }),
      database: fc.nat({ max: 15 }),
      place: fc.constantFrom('/N', '?db=N', '/?db=N', '/N?db='),
      host: fc.constantFrom('127.0.0.1', 'localhost', ...(hasIPv6 ? ['[::1]'] : [])),
    }),
    async ({ user, password, database, place, host }) => {
      await admin.sendCommand([
        'ACL',
        'SETUSER',
        user,
        'reset',
        'on',
        `>${password}`,
        '~*',
        '+@all',
      ])
      const [name, secret] = [user, password].map(encodeURIComponent)
      const { port } = new URL(redis.url)
      const url = `redis://${name}:${secret}@${host}:${port}${place.replace('N', `${database}`)}`
      const namespace = `url-${++runs}`
      expect(await threeOf(at(url, { namespace }))).toEqual(LIMITED)
      await admin.sendCommand(['SELECT', `${database}`])
      expect(await admin.sendCommand(['KEYS', `*${namespace}*`])).toHaveLength(1)
      await admin.sendCommand(['ACL', 'DELUSER', user])
    },
    20,
    1,
  )

  test('with a wrong password is the error unauthorized.', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => error.mockRestore())
    const quota = at(redis.url.replace('//', '//ann:wrong@'))
    expect((await quota.limit('calls', newSubject())).reason).toBe('store-error')
    expect(`${error.mock.calls}`).toContain('unauthorized: the token or the password was refused')
    expect(`${error.mock.calls}`).not.toContain('wrong@')
  })

  test('of rediss begins with TLS, and sends no password to a server without it.', async () => {
    const server = createServer((socket) =>
      socket.once('data', (sent) => {
        first.push(sent)
        socket.destroy()
      }),
    ).listen(0, '127.0.0.1')
    const first: Buffer[] = []
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const quota = at(`rediss://:secret@127.0.0.1:${(server.address() as AddressInfo).port}`)
    await quota.limit('calls', 'ann')
    expect(first[0]![0]).toBe(0x16) // a handshake (RFC 8446, 5.1)
    expect(`${first[0]}`).not.toContain('secret')
  })
})

describe('The connection', () => {
  function logged() {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => error.mockRestore())
    return error.mock.calls
  }

  test('opens when Redis has come: until then onStoreError decides, and the log has the reason.', async () => {
    const lines = logged()
    const port = await freePort()
    const quota = at(`redis://127.0.0.1:${port}`)
    expect((await quota.limit('calls', 'ann')).reason).toBe('store-error')
    expect(`${lines}`).toContain('ECONNREFUSED')
    const redis = await startRedis({ own: true, port })
    onTestFinished(() => redis.stop())
    expect(await threeOf(quota)).toEqual(LIMITED)
  })

  test('is replaced by the next call after it was lost between two calls, without a failed one.', async () => {
    const lines = logged()
    const relay = await startRelay(database.redis.url)
    onTestFinished(() => relay.stop())
    const quota = at(relay.url)
    expect(await threeOf(quota)).toEqual(LIMITED)
    relay.drop()
    await expect.poll(() => relay.open).toBe(0)
    expect(await threeOf(quota)).toEqual(LIMITED)
    expect(relay.accepted).toBe(2)
    expect(lines).toEqual([])
  })

  test('to a server that has become a replica is replaced.', async () => {
    logged()
    const relay = await startRelay(database.redis.url)
    onTestFinished(() => relay.stop())
    const quota = at(relay.url)
    const decide = async () => (await quota.limit('calls', newSubject())).reason
    expect(await decide()).toBe('within-limit')
    relay.does = "-READONLY You can't write against a read only replica."
    expect(await decide()).toBe('store-error')
    relay.does = 'pass'
    expect(await decide()).toBe('within-limit')
    expect(relay.accepted).toBe(2)
  })

  test.each(['pass', 'hold'] as const)(
    'that a server leaves silent is replaced after 5 s (which a relay begins with: %s).',
    async (does) => {
      logged()
      const relay = await startRelay(database.redis.url, { does })
      onTestFinished(() => relay.stop())
      const quota = limits(
        { calls: { ...terms.calls, deadline: '500ms' } },
        { env: { ...SECRET, REDIS_URL: relay.url } },
      )
      const decide = async () => (await quota.limit('calls', newSubject())).reason
      if (does === 'pass') expect(await decide()).toBe('within-limit')
      relay.pause()
      expect(await decide()).toBe('store-error')
      relay.does = 'pass' // for new connections
      vi.useFakeTimers({ now: Date.now() + 6_000, toFake: ['Date'] })
      onTestFinished(() => void vi.useRealTimers())
      await expect.poll(decide).toBe('within-limit')
      expect(relay.accepted).toBe(2)
    },
  )
})
