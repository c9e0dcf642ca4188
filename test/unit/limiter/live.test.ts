import { expect, test, vi } from 'vitest'
import { StoreError } from '../../../src/base/errors.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { createLimiter } from '../../../src/limiter/create.ts'
import { createLive } from '../../../src/limiter/live.ts'
import { viewOf } from '../../../src/request/view.ts'

/** A document that a test hands out, by its own clock: `read` is what the next looks meet. */
function world(first: () => Promise<string | null>) {
  const said: string[] = []
  const background: Promise<unknown>[] = []
  const it = {
    now: 1_789_000_000_000,
    reads: 0,
    read: first,
    said,
    /** What holds for a request now. */
    ask: () =>
      current({ env: {}, context: undefined, waitUntil: (work) => void background.push(work) }),
    /** A request, then all that it left behind; what holds after it. */
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
      if (typeof document !== 'string') throw new TypeError('no text')
      return document
    },
    read: () => {
      it.reads += 1
      return it.read()
    },
    log: (event, code, message) => void said.push(`${event} ${code} ${message}`.trim()),
    clock: () => it.now,
  })
  return it
}
const text = (value: unknown) => async () => JSON.stringify(value)

test('a request sees what an earlier one found, and is never kept waiting', async () => {
  const live = world(text('one'))
  expect(live.ask()).toBe('deployed')
  expect(await live.peek()).toBe('one')
  const never = world(() => new Promise(() => {}))
  for (let time = 0; time < 5; time++, never.now += 1000) expect(never.ask()).toBe('deployed')
  expect(never.reads).toBe(5)
})

test('it is looked for once in its time, however many ask, and a clock that runs back looks at once', async () => {
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

test('what is wrong is told once, and changes nothing; what is gone leaves the deployment', async () => {
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
  expect(live.said.map((line) => line.replace(/force: .*/, 'force'))).toEqual([
    'live-changed  new live policies are in force',
    'live-refused TypeError the live policies are invalid; the current policies stay in force',
    'live-refused SyntaxError the live policies are invalid; the current policies stay in force',
    'live-changed  new live policies are in force',
    'live-changed  the live policies were removed; the deployed policies are in force',
  ])
})

test('a document with any number of faults is told of in one line that a log takes', async () => {
  const said: string[] = []
  const current = createLive<string>({
    live: { from: 'redis', key: 'k', everyMs: 1000 },
    fallback: 'deployed',
    compile: () => {
      throw new Error('policies[0].name: expected … '.repeat(100_000))
    },
    read: text([]),
    log: (...line) => void said.push(line.join(' ')),
  })
  const background: Promise<unknown>[] = []
  current({ env: {}, context: undefined, waitUntil: (work) => void background.push(work) })
  await Promise.all(background)
  expect(said[0]).toMatch(
    /^live-refused Error the live policies are invalid; the current policies stay in force: policies\[0\]/,
  )
  expect(said[0]!.length).toBeLessThan(3_000)
})

test('why it cannot be read is told once, and again when it is another reason or was mended', async () => {
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
  expect(live.said.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    ...[
      'live-changed ',
      'live-unread timeout',
      'live-unread redis-error',
      'live-unread redis-error',
    ],
  ])
})

test('a peek that comes back after a later one says nothing any more', async () => {
  const slow = Promise.withResolvers<string | null>()
  const live = world(() => slow.promise)
  live.ask()
  live.now += 1000
  live.read = text('new')
  live.ask()
  await Promise.resolve()
  slow.resolve(JSON.stringify('old'))
  expect(await live.peek()).toBe('new')
  expect(live.said).toHaveLength(1)
})

test('an issuer is not asked again for the sake of new policies', async () => {
  const key = { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32, 1).toString('base64url') }
  const issuer = vi
    .spyOn(globalThis, 'fetch')
    .mockImplementation(async () => Response.json({ keys: [key] }))
  const policy = { name: 'per-user', limit: 5, window: '1m', key: 'jwt:sub' } as const
  const options = {
    policies: [policy],
    jwt: { jwks: 'https://issuer.example.com/keys' },
    live: { from: 'kv:RULES', every: 1 },
  } as const
  const config = parseConfig(options)
  const rulesOf = createLimiter(config, options).rulesOf
  const document = JSON.stringify({ policies: [{ ...policy, limit: 7 }] })
  const token = `${btoa('{"alg":"EdDSA"}')}.${btoa('{}')}.AAAA`.replaceAll('=', '')
  const limits: number[] = []
  for (let time = 0; time < 3; time++) {
    const work: Promise<unknown>[] = []
    const seen = viewOf(
      new Request('https://a/', { headers: { authorization: `Bearer ${token}` } }),
      {
        env: { RULES: { get: async () => document } },
        context: undefined,
        waitUntil: (promise) => void work.push(promise),
      },
      config,
    )
    limits.push((await rulesOf(seen).match(seen)).policies[0]!.policy.limit)
    await Promise.all(work)
  }
  expect([limits, issuer.mock.calls.length]).toEqual([[5, 7, 7], 1])
  issuer.mockRestore()
})
