import { expect, test, vi } from 'vitest'
import { ConfigError, StoreError } from '../../../../src/core/base/errors.ts'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { createLimiter } from '../../../../src/core/create.ts'
import { defaults } from '../../../../src/features/defaults.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { createLive } from '../../../../src/features/live/live.ts'
import { createAppLimiter } from '../../../../src/hosts/app/app-limiter.ts'
import { live } from '../../../support/features.ts'
import { viewOnCloudflare } from '../../../support/view-on-cloudflare.ts'

const NO_TEXT = { path: 'live', expected: 'a text', got: 'another value' }

/** Live policies with a clock and a document that the test controls. `read` makes the result of the next reads. */
function world(first: () => Promise<string | null>) {
  const lines: string[] = []
  const background: Promise<unknown>[] = []
  const it = {
    now: 1_789_000_000_000,
    reads: 0,
    read: first,
    lines,
    /** When a document `loading` has its parser. */
    loaded: Promise.resolve(),
    /** The value for a request. */
    ask: () =>
      current({ env: {}, context: undefined, waitUntil: (work) => void background.push(work) }),
    /** Makes a request, waits for its background work, and returns the value after it. */
    async peek() {
      it.ask()
      await Promise.all(background.splice(0))
      return it.ask()
    },
  }
  const current = createLive<string>({
    live: { from: 'redis', key: 'k', everyMs: 1000 },
    fallback: 'deployed',
    compile(document) {
      if (document === 'loading') return it.loaded.then(() => document)
      if (typeof document !== 'string') throw new ConfigError([NO_TEXT])
      return document
    },
    read: () => {
      it.reads += 1
      return it.read()
    },
    log: (event, code, message) => void lines.push(`${event} ${code} ${message}`.trim()),
    clock: () => it.now,
  })
  return it
}
const text = (value: unknown) => async () => JSON.stringify(value)

test('A request sees the document that an earlier request has read, and never waits for a read.', async () => {
  const live = world(text('one'))
  expect(live.ask()).toBe('deployed')
  expect(await live.peek()).toBe('one')
  const never = world(() => new Promise(() => {}))
  for (let time = 0; time < 5; time++, never.now += 1000) expect(never.ask()).toBe('deployed')
  expect(never.reads).toBe(5)
})

test('The document is read once per interval for any number of requests, and at once after the clock is set back.', async () => {
  const live = world(text('one'))
  for (let time = 0; time < 100; time++) live.ask()
  live.now += 999
  await live.peek()
  expect(live.reads).toBe(1)
  live.now += 1
  await live.peek()
  expect(live.reads).toBe(2)
  live.now -= 60_000
  await live.peek()
  expect(live.reads).toBe(3)
})

test('An invalid document is logged once and changes nothing, and without a document the deployed policies are in force.', async () => {
  const live = world(text('one'))
  const after = async (read: () => Promise<string | null>) => {
    live.now += 1000
    live.read = read
    return live.peek()
  }
  expect(await live.peek()).toBe('one')
  expect(await after(text(7))).toBe('one')
  expect(await after(text(7))).toBe('one')
  expect(await after(async () => '{ "policies"')).toBe('one')
  expect(await after(text('one'))).toBe('one')
  expect(await after(async () => null)).toBe('deployed')
  expect(await after(async () => null)).toBe('deployed')
  expect(live.lines.map((line) => line.replace(/force: .*/, 'force'))).toEqual([
    'live-changed  new live policies are in force',
    'live-refused ConfigError the live policies are invalid; the current policies stay in force',
    'live-refused SyntaxError the live policies are invalid; the current policies stay in force',
    'live-changed  new live policies are in force',
    'live-changed  the live policies were removed; the deployed policies are in force',
  ])
})

test('The log line for a document with any number of problems has a bounded length.', async () => {
  const lines: string[] = []
  const current = createLive<string>({
    live: { from: 'redis', key: 'k', everyMs: 1000 },
    fallback: 'deployed',
    compile: () => {
      throw new ConfigError([{ ...NO_TEXT, expected: 'a text of many words '.repeat(100_000) }])
    },
    read: text([]),
    log: (...line) => void lines.push(line.join(' ')),
  })
  const background: Promise<unknown>[] = []
  current({ env: {}, context: undefined, waitUntil: (work) => void background.push(work) })
  await Promise.all(background)
  expect(lines[0]).toMatch(
    /^live-refused ConfigError the live policies are invalid; the current policies stay in force: live: /,
  )
  expect(lines[0]!.length).toBeLessThan(3_000)
})

test('A read error is logged once, and again after another error or a successful read.', async () => {
  const live = world(text('one'))
  const after = async (read: () => Promise<string | null>) => {
    live.now += 1000
    live.read = read
    return live.peek()
  }
  const failing = (code: 'timeout' | 'redis-error') => async () => {
    throw new StoreError(code)
  }
  await live.peek()
  expect(await after(failing('timeout'))).toBe('one')
  await after(failing('timeout'))
  await after(failing('redis-error'))
  await after(text('one'))
  await after(failing('redis-error'))
  expect(live.lines.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    ...[
      'live-changed ',
      'live-unread timeout',
      'live-unread redis-error',
      'live-unread redis-error',
    ],
  ])
})

test('A read that ends after a later read has no effect.', async () => {
  const slow = Promise.withResolvers<string | null>()
  const live = world(() => slow.promise)
  live.ask()
  live.now += 1000
  live.read = text('new')
  live.ask()
  await Promise.resolve()
  slow.resolve(JSON.stringify('old'))
  expect(await live.peek()).toBe('new')
  expect(live.lines).toHaveLength(1)
})

test('A document whose parser loads until a later read has ended has no effect.', async () => {
  const parser = Promise.withResolvers<void>()
  const live = world(text('loading'))
  live.loaded = parser.promise
  live.ask()
  await Promise.resolve()
  live.now += 1000
  live.read = async () => null
  live.ask()
  await Promise.resolve()
  parser.resolve()
  expect(await live.peek()).toBe('deployed')
  expect(live.lines).toEqual([])
})

test('A parser that does not load is logged once, and tried again with the same document.', async () => {
  const live = world(text('loading'))
  for (let time = 0; time < 3; time++, live.now += 1000) {
    live.loaded = Promise.reject(new TypeError('fetch failed'))
    expect(await live.peek()).toBe('deployed')
  }
  live.loaded = Promise.resolve()
  expect(await live.peek()).toBe('loading')
  expect(live.lines.map((line) => line.split(' ', 2).join(' '))).toEqual([
    'live-unread TypeError',
    'live-changed ',
  ])
})

test('New policies do not download the keys of an issuer again.', async () => {
  const key = { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32, 1).toString('base64url') }
  const issuer = vi
    .spyOn(globalThis, 'fetch')
    .mockImplementation(async () => Response.json({ keys: [key] }))
  const policy = { name: 'per-user', limit: 5, window: '1m', key: 'jwt:sub' } as const
  const options = {
    policies: [policy],
    use: [jwt({ jwks: 'https://issuer.example.com/keys' }), live()],
    live: { from: 'kv:RULES', every: 1 },
  } as const
  const { config, rulesOf } = createLimiter(options, { byDefault: defaults() })
  const document = JSON.stringify({ policies: [{ ...policy, limit: 7 }] })
  const token = `${btoa('{"alg":"EdDSA"}')}.${btoa('{}')}.AAAA`.replaceAll('=', '')
  const limits: number[] = []
  for (let time = 0; time < 3; time++) {
    const work: Promise<unknown>[] = []
    const seen = viewOnCloudflare(
      new Request('https://a/', { headers: { authorization: `Bearer ${token}` } }),
      {
        env: { RULES: { get: async () => document } },
        context: undefined,
        waitUntil: (promise) => void work.push(promise),
      },
      config,
    )
    limits.push((await rulesOf(seen).match(seen)).policies[0]!.terms.limit)
    await Promise.all(work)
  }
  expect([limits, issuer.mock.calls.length]).toEqual([[5, 7, 7], 1])
  issuer.mockRestore()
})

test('The problems of a document name its policies, and what the host lacks.', async () => {
  const old = { name: 'old', limit: 1, window: '1m' } as const
  const options: ConfigOptions = {
    policies: [old],
    live: { from: 'kv:RULES', every: 1 },
    use: [live()],
  }
  const problemOf = async (policy: object) => {
    const lines: string[] = []
    const spy = vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(line))
    const document = JSON.stringify({ policies: [{ ...old, name: 'new', ...policy }] })
    const work: Promise<unknown>[] = []
    createAppLimiter(options).rulesOf({
      env: { RULES: { get: async () => document } },
      context: undefined,
      waitUntil: (promise) => void work.push(promise),
    })
    await Promise.all(work)
    spy.mockRestore()
    return lines.join()
  }
  expect(await problemOf({ key: 'jwt:sub' })).toMatch(
    /policies\[0\].key: expected use: \[jwt\(\)\].*\(in .*new/,
  )
  expect(await problemOf({ lease: { max: 2, ttl: '5s' } })).toContain('live-changed')
})
