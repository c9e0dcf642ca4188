/** The cached keys of an issuer, with a simulated clock and a real server. */
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createJwks, type JwksOptions } from '../../../../src/features/jwt/jwks.ts'
import { type Answer, type Issuer, json, seenWith, startIssuer } from '../../../support/issuer.ts'

const MINUTE = 60_000

let issuer: Issuer
let now: number
let lines: string[]
let jwks: ReturnType<typeof createJwks<unknown>>
let background: Promise<unknown>[]
/** Number of started fetches. The server may not have received them yet. */
let started: number

const create = (options: Partial<JwksOptions<unknown>> = {}) =>
  createJwks<unknown>({
    url: issuer.url,
    parse: async (document) => (document as { keys: unknown }).keys,
    deadlineMs: 10_000,
    log: (event, code, message) => void lines.push(`${event} ${code}: ${message}`),
    clock: () => now,
    ...options,
  })

beforeEach(async () => {
  issuer = await startIssuer(json({ keys: 'first' }))
  now = 1_789_000_000_000
  lines = []
  background = []
  started = 0
  jwks = create()
})
afterEach(() => issuer.close())

function request(set = jwks) {
  const waitUntil = (promise: Promise<unknown>) => {
    started += 1
    background.push(promise)
  }
  const seen = seenWith().with({ waitUntil })
  return { keys: () => set.keys(seen), renew: () => set.renew(seen) }
}
const keys = (set = jwks) => request(set).keys()
/** The result of calls that do not wait for I/O; `'waits'` if they do. */
const atOnce = (...results: Promise<unknown>[]) =>
  Promise.race([
    Promise.all(results),
    new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits'))),
  ])
/** Waits for the background work of all requests. */
const settled = async () => {
  while (background.length > 0) await background.shift()
}
const hanging: Answer = () => {}
const failing: Answer = (response) => response.writeHead(500).end('{"keys":"no"}')

describe('an isolate without keys', () => {
  test('The first request fetches the keys and waits for them.', async () => {
    expect(await keys()).toBe('first')
    expect([issuer.fetches, lines]).toEqual([1, []])
  })

  test('200 concurrent requests cause one fetch, and all of them get the keys.', async () => {
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 100)
    const all = await Promise.all(Array.from({ length: 200 }, () => keys()))
    expect(new Set(all)).toEqual(new Set(['late']))
    expect(issuer.fetches).toBe(1)
  })

  test('A request waits at most for its deadline, and the requests of the next ten seconds do not wait.', async () => {
    issuer.answer = hanging
    const impatient = create({ deadlineMs: 400, fetchMs: 2500 })
    const before = performance.now()
    expect(await Promise.all([keys(impatient), keys(impatient)])).toEqual([undefined, undefined])
    const waited = performance.now() - before
    expect(waited).toBeGreaterThan(390)
    expect(waited).toBeLessThan(2000)
    expect(await atOnce(keys(impatient), keys(impatient))).toEqual([undefined, undefined])
    expect(started).toBe(1)
    await settled()
    expect(lines).toEqual([
      "jwks timeout: the issuer's keys could not be fetched: the server did not answer within 2500 ms",
    ])
  })

  test('Keys that arrive after the deadline of a request are cached.', async () => {
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 200)
    const impatient = create({ deadlineMs: 20 })
    expect(await keys(impatient)).toBe(undefined)
    await settled()
    expect(await keys(impatient)).toBe('late')
    expect([issuer.fetches, lines]).toEqual([1, []])
  })

  test('After a failure, the isolate fetches again every two seconds in the background, and requests wait again after ten seconds.', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    now += 1999
    expect(await keys()).toBe(undefined)
    expect(started).toBe(1)
    now += 1
    issuer.answer = hanging
    expect(await atOnce(keys(), keys())).toEqual([undefined, undefined])
    await expect.poll(() => issuer.fetches).toBe(2)
    now += 7999
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 50)
    expect(await keys()).toBe(undefined) // less than ten seconds since the failure
    await expect.poll(() => issuer.fetches).toBe(3)
    await expect.poll(() => keys()).toBe('late')
    await issuer.close() // ends the one that hangs
    await settled()
  })

  test('Requests wait again ten seconds after a failure.', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 50)
    now += 10_000
    expect(await Promise.all([keys(), keys()])).toEqual(['late', 'late'])
    expect(issuer.fetches).toBe(2)
  })

  test('Requests do not wait while fetches in the background fail too.', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    now += 9000
    expect(await keys()).toBe(undefined)
    await settled()
    expect(issuer.fetches).toBe(2)
    issuer.answer = hanging
    now += 9999
    expect(await atOnce(keys())).toEqual([undefined])
    expect(started).toBe(3)
    await expect.poll(() => issuer.fetches).toBe(3)
    await issuer.close() // ends the one that hangs
    await settled()
  })

  test('A fetch without an answer does not block later fetches.', async () => {
    issuer.answer = hanging
    const impatient = create({ deadlineMs: 10 })
    expect(await keys(impatient)).toBe(undefined)
    await expect.poll(() => issuer.fetches).toBe(1)
    now += 5_999
    issuer.answer = json({ keys: 'second' })
    expect(await keys(impatient)).toBe(undefined)
    expect(started).toBe(1)
    now += 1
    await keys(impatient)
    await background.at(-1)
    expect(await keys(impatient)).toBe('second')
    expect(issuer.fetches).toBe(2)
    await issuer.close()
    await settled()
    expect(await keys(impatient)).toBe('second')
  })
})

describe('cached keys', () => {
  beforeEach(async () => {
    await keys()
    issuer.answer = json({ keys: 'second' })
  })

  test('Cached keys are renewed in the background after ten minutes, with one fetch.', async () => {
    now += 10 * MINUTE - 1
    expect(await keys()).toBe('first')
    expect(issuer.fetches).toBe(1)
    now += 1
    issuer.answer = (response) => setTimeout(() => json({ keys: 'second' })(response, null!), 1000)
    expect(await atOnce(...Array.from({ length: 50 }, () => keys()))).toEqual(
      Array(50).fill('first'),
    )
    expect(background).toHaveLength(2)
    await settled()
    expect(await keys()).toBe('second')
    expect([issuer.fetches, lines]).toEqual([2, []])
    now += 10 * MINUTE - 1
    await keys()
    expect(issuer.fetches).toBe(2)
  })

  test('Cached keys stay in use while fetches fail, with one fetch every 30 s.', async () => {
    issuer.answer = failing
    now += 10 * MINUTE
    for (let second = 0; second < 120; second++) {
      expect(await keys()).toBe('first')
      await settled()
      now += 1000
    }
    expect(issuer.fetches).toBe(1 + 4)
    expect(new Set(lines)).toEqual(
      new Set(["jwks bad-status: the issuer's keys could not be fetched: the server answered 500"]),
    )
    now += 31 * 24 * 60 * MINUTE
    expect(await keys()).toBe('first')
  })

  test('Tokens that are signed with unknown keys cause at most one fetch every 30 s.', async () => {
    for (let i = 0; i < 100; i++) request().renew()
    await settled()
    expect(issuer.fetches).toBe(1)
    now += 29_999
    request().renew()
    await settled()
    expect(issuer.fetches).toBe(1)
    now += 1
    for (let i = 0; i < 100; i++) request().renew()
    expect(await keys()).toBe('first') // no request waits
    await settled()
    expect(await keys()).toBe('second')
    expect(issuer.fetches).toBe(2)
  })

  test('Cached keys stay in use and are renewed after the clock is set back.', async () => {
    now -= 60 * MINUTE
    expect(await keys()).toBe('first')
    await settled()
    expect(await keys()).toBe('second')
    expect(issuer.fetches).toBe(2)
  })
})

describe('a fetch that returns no key set', () => {
  const text =
    (body: string, head: Record<string, string> = {}): Answer =>
    (response) =>
      response.writeHead(200, head).end(body)
  const bomb = gzipSync(Buffer.alloc(10_000_000, 32))
  const big = (bytes: number) => JSON.stringify({ keys: 'x'.repeat(bytes - 11) })

  test.each<[string, string, Answer]>([
    ['status 500', 'bad-status', failing],
    ['status 404', 'bad-status', (response) => response.writeHead(404).end()],
    ['status 204', 'bad-status', (response) => response.writeHead(204).end()],
    [
      'HTML',
      'no-keys',
      text('<!doctype html><title>Sign in</title>', { 'content-type': 'text/html' }),
    ],
    ['an empty body', 'no-keys', text('')],
    ['half a key set', 'no-keys', text('{"keys":[')],
    ['null', 'no-keys', text('null')],
    ['a number', 'no-keys', text('7')],
    ['another document', 'no-keys', text('{"error":"nope"}')],
    ['60,000 brackets', 'no-keys', text('['.repeat(60_000))],
    ['invalid UTF-8', 'no-keys', (response) => response.end(Buffer.alloc(1000, 0xff))],
    ['64 KiB and one byte', 'too-large', text(big(65_537))],
    [
      'an endless body',
      'too-large',
      (response) => {
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, 32)));
        }
        response.on('drain', more)
        more()
      },
    ],
    [
      'a compressed body of 10 MB',
      'too-large',
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    ],
    ['a broken encoding', 'unreachable', text('no gzip', { 'content-encoding': 'gzip' })],
    ['a connection reset', 'unreachable', (response) => response.socket!.destroy()],
    [
      'an incomplete body',
      'unreachable',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"keys":')
        setTimeout(() => response.socket?.destroy(), 50)
      },
    ],
    ['no response', 'timeout', hanging],
    ['half a response', 'timeout', (response) => response.writeHead(200).write('{"keys":')],
    [
      'a body of one byte every 20 ms',
      'timeout',
      (response) => {
        const drip = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(drip))
      },
    ],
  ])(
    'With %s the event jwks %s is logged, and cached keys stay in use.',
    async (_, code, answer) => {
      issuer.answer = answer
      const set = create({ deadlineMs: 10_000, fetchMs: code === 'timeout' ? 1500 : 8000 })
      expect(await keys(set)).toBe(undefined)
      await settled()
      expect(lines.map((line) => line.split(':')[0])).toEqual([`jwks ${code}`])

      issuer.answer = json({ keys: 'good' })
      now += MINUTE
      expect(await keys(set)).toBe('good')
      issuer.answer = answer
      now += 10 * MINUTE
      expect(await keys(set)).toBe('good')
      await settled()
      expect(await keys(set)).toBe('good')
      expect(lines.map((line) => line.split(':')[0])).toEqual([`jwks ${code}`, `jwks ${code}`])
      expect(issuer.fetches).toBe(3)
    },
  )

  test('A document of 64 KiB is accepted.', async () => {
    issuer.answer = text(big(65_536))
    expect(await keys()).toHaveLength(65_525)
  })

  test.each([301, 302, 303, 307, 308])(
    'A redirect with status %i is not followed.',
    async (status) => {
      const other = await startIssuer(json({ keys: 'of another' }))
      issuer.answer = (response) => response.writeHead(status, { location: other.url }).end()
      expect(await keys()).toBe(undefined)
      expect(other.fetches).toBe(0)
      expect(lines).toEqual([
        `jwks bad-status: the issuer's keys could not be fetched: the server answered ${status}`,
      ])
      await other.close()
    },
  )

  test('A server that is not reachable is logged as unreachable.', async () => {
    const gone = create({ url: 'http://127.0.0.1:1/jwks.json' })
    expect(await keys(gone)).toBe(undefined)
    expect(lines).toEqual([
      "jwks unreachable: the issuer's keys could not be fetched: the connection failed",
    ])
  })

  test('A parser that throws is logged, and there are no keys.', async () => {
    const parse = async () => {
      throw new Error('no')
    }
    expect(await keys(create({ parse }))).toBe(undefined)
    expect(lines).toHaveLength(1)
  })
})
