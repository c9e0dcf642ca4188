/** The keys of an issuer as an isolate keeps them: time is passed in, the server is real. */
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createJwks, type Jwks, type JwksOptions } from '../../../src/credentials/jwks.ts'
import { type Answer, type Issuer, json, seenWith, startIssuer } from '../../support/issuer.ts'

const MINUTE = 60_000

let issuer: Issuer
let now: number
let lines: string[]
let jwks: Jwks<unknown>
let background: Promise<unknown>[]
/** Fetches that were begun; the server may not have seen them yet. */
let begun: number

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
  begun = 0
  jwks = create()
})
afterEach(() => issuer.close())

function ask(set = jwks) {
  const seen = seenWith()
  seen.background = background
  seen.waitUntil = (promise) => {
    begun += 1
    background.push(promise)
  }
  return { keys: () => set.keys(seen), renew: () => set.renew(seen) }
}
const keys = (set = jwks) => ask(set).keys()
/** What still goes on when the request has been answered. */
const settled = async () => {
  while (background.length > 0) await background.shift()
}
const hanging: Answer = () => {}
const failing: Answer = (response) => response.writeHead(500).end('{"keys":"no"}')

describe('a cold isolate', () => {
  test('fetches once, and the request that does waits for it', async () => {
    expect(await keys()).toBe('first')
    expect([issuer.fetches, lines]).toEqual([1, []])
  })

  test('fetches once for 200 requests at a time, who all get the keys', async () => {
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 100)
    const all = await Promise.all(Array.from({ length: 200 }, () => keys()))
    expect(new Set(all)).toEqual(new Set(['late']))
    expect(issuer.fetches).toBe(1)
  })

  test('keeps no request longer than its deadline, and then none at all for ten seconds', async () => {
    issuer.answer = hanging
    const impatient = create({ deadlineMs: 400, fetchMs: 2500 })
    const before = performance.now()
    expect(await Promise.all([keys(impatient), keys(impatient)])).toEqual([undefined, undefined])
    const waited = performance.now() - before
    expect(waited).toBeGreaterThan(390)
    expect(waited).toBeLessThan(2000)
    const again = performance.now()
    expect(await Promise.all([keys(impatient), keys(impatient)])).toEqual([undefined, undefined])
    expect(performance.now() - again).toBeLessThan(300)
    expect(begun).toBe(1)
    await settled()
    expect(lines).toEqual([
      "jwks timeout: the issuer's keys could not be fetched: the server did not answer within 2500 ms",
    ])
  })

  test('has the keys that came after a deadline', async () => {
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 200)
    const impatient = create({ deadlineMs: 20 })
    expect(await keys(impatient)).toBe(undefined)
    await settled()
    expect(await keys(impatient)).toBe('late')
    expect([issuer.fetches, lines]).toEqual([1, []])
  })

  test('tries again in the background every two seconds, and waits again after ten', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    now += 1999
    expect(await keys()).toBe(undefined)
    expect(begun).toBe(1)
    now += 1
    issuer.answer = hanging // a request that waited would not come back in time
    const before = performance.now()
    expect(await Promise.all([keys(), keys()])).toEqual([undefined, undefined])
    expect(performance.now() - before).toBeLessThan(500)
    await expect.poll(() => issuer.fetches, { timeout: 5000 }).toBe(2)
    now += 7999
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 50)
    expect(await keys()).toBe(undefined) // not ten seconds yet
    await expect.poll(() => issuer.fetches, { timeout: 5000 }).toBe(3)
    await expect.poll(() => keys(), { timeout: 5000 }).toBe('late')
    await issuer.close() // ends the one that hangs
    await settled()
  })

  test('waits again ten seconds after a failure', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    issuer.answer = (response) => setTimeout(() => json({ keys: 'late' })(response, null!), 50)
    now += 10_000
    expect(await Promise.all([keys(), keys()])).toEqual(['late', 'late'])
    expect(issuer.fetches).toBe(2)
  })

  test('waits for nothing while the background fails too', async () => {
    issuer.answer = failing
    expect(await keys()).toBe(undefined)
    now += 9000
    expect(await keys()).toBe(undefined)
    await settled()
    expect(issuer.fetches).toBe(2)
    issuer.answer = hanging
    now += 9999
    const before = performance.now()
    expect(await keys()).toBe(undefined)
    expect(performance.now() - before).toBeLessThan(500)
    expect(begun).toBe(3)
    await expect.poll(() => issuer.fetches, { timeout: 5000 }).toBe(3)
    await issuer.close() // ends the one that hangs
    await settled()
  })

  test('does not count on a fetch whose request never came back', async () => {
    issuer.answer = hanging
    const impatient = create({ deadlineMs: 10 })
    expect(await keys(impatient)).toBe(undefined)
    await expect.poll(() => issuer.fetches, { timeout: 5000 }).toBe(1)
    now += 5_999
    issuer.answer = json({ keys: 'second' })
    expect(await keys(impatient)).toBe(undefined)
    expect(begun).toBe(1)
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

describe('keys in hand', () => {
  beforeEach(async () => {
    await keys()
    issuer.answer = json({ keys: 'second' })
  })

  test('are renewed after ten minutes, in the background, once', async () => {
    now += 10 * MINUTE - 1
    expect(await keys()).toBe('first')
    expect(issuer.fetches).toBe(1)
    now += 1
    issuer.answer = (response) => setTimeout(() => json({ keys: 'second' })(response, null!), 1000)
    const before = performance.now()
    expect(await Promise.all(Array.from({ length: 50 }, () => keys()))).toEqual(
      Array(50).fill('first'),
    )
    expect(performance.now() - before).toBeLessThan(800)
    expect(background).toHaveLength(2)
    await settled()
    expect(await keys()).toBe('second')
    expect([issuer.fetches, lines]).toEqual([2, []])
    now += 10 * MINUTE - 1
    await keys()
    expect(issuer.fetches).toBe(2)
  })

  test('stay where that fails, for as long as it does, and every 30 s one fetch tries', async () => {
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

  test('are asked for anew at most every 30 s, whoever signs with others', async () => {
    for (let i = 0; i < 100; i++) ask().renew()
    await settled()
    expect(issuer.fetches).toBe(1)
    now += 29_999
    ask().renew()
    await settled()
    expect(issuer.fetches).toBe(1)
    now += 1
    for (let i = 0; i < 100; i++) ask().renew()
    expect(await keys()).toBe('first') // nobody waits
    await settled()
    expect(await keys()).toBe('second')
    expect(issuer.fetches).toBe(2)
  })

  test('outlive a clock that is set back, and are renewed all the same', async () => {
    now -= 60 * MINUTE
    expect(await keys()).toBe('first')
    await settled()
    expect(await keys()).toBe('second')
    expect(issuer.fetches).toBe(2)
  })
})

describe('what is no key set is survived, without and with keys in hand:', () => {
  const text =
    (body: string, head: Record<string, string> = {}): Answer =>
    (response) =>
      response.writeHead(200, head).end(body)
  const bomb = gzipSync(Buffer.alloc(10_000_000, 32))
  const big = (bytes: number) => JSON.stringify({ keys: 'x'.repeat(bytes - 11) })

  test.each<[string, string, Answer]>([
    ['500', 'bad-status', failing],
    ['404', 'bad-status', (response) => response.writeHead(404).end()],
    ['204', 'bad-status', (response) => response.writeHead(204).end()],
    [
      'HTML',
      'no-keys',
      text('<!doctype html><title>Sign in</title>', { 'content-type': 'text/html' }),
    ],
    ['nothing', 'no-keys', text('')],
    ['half of it', 'no-keys', text('{"keys":[')],
    ['null', 'no-keys', text('null')],
    ['a number', 'no-keys', text('7')],
    ['another document', 'no-keys', text('{"error":"nope"}')],
    ['brackets', 'no-keys', text('['.repeat(60_000))],
    ['no UTF-8', 'no-keys', (response) => response.end(Buffer.alloc(1000, 0xff))],
    ['64 KiB and a byte', 'too-large', text(big(65_537))],
    [
      '100 MB, were it read',
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
      'a bomb',
      'too-large',
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    ],
    ['a broken encoding', 'unreachable', text('no gzip', { 'content-encoding': 'gzip' })],
    ['a connection reset', 'unreachable', (response) => response.socket!.destroy()],
    [
      'a body cut short',
      'unreachable',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"keys":')
        setTimeout(() => response.socket?.destroy(), 50)
      },
    ],
    ['no answer', 'timeout', hanging],
    ['half an answer', 'timeout', (response) => response.writeHead(200).write('{"keys":')],
    [
      'a drip',
      'timeout',
      (response) => {
        const drip = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(drip))
      },
    ],
  ])('%s (%s)', async (_, code, answer) => {
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
  })

  test('64 KiB are not too much', async () => {
    issuer.answer = text(big(65_536))
    expect(await keys()).toHaveLength(65_525)
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%i) is not followed', async (status) => {
    const other = await startIssuer(json({ keys: 'of another' }))
    issuer.answer = (response) => response.writeHead(status, { location: other.url }).end()
    expect(await keys()).toBe(undefined)
    expect(other.fetches).toBe(0)
    expect(lines).toEqual([
      `jwks bad-status: the issuer's keys could not be fetched: the server answered ${status}`,
    ])
    await other.close()
  })

  test('a server that is not there', async () => {
    const gone = create({ url: 'http://127.0.0.1:1/jwks.json' })
    expect(await keys(gone)).toBe(undefined)
    expect(lines).toEqual([
      "jwks unreachable: the issuer's keys could not be fetched: the connection failed",
    ])
  })

  test('a parser that throws', async () => {
    const parse = async () => {
      throw new Error('no')
    }
    expect(await keys(create({ parse }))).toBe(undefined)
    expect(lines).toHaveLength(1)
  })
})
