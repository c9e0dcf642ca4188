/** The rate limit storage of Better Auth, in Better Auth itself. */
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { sluiceStorage } from '../../../src/adapters/better-auth.ts'
import { useDatabase } from '../../support/database.ts'

const { env } = useDatabase()
afterEach(() => void vi.useRealTimers())

let namespaces = 0
const newNamespace = () => `auth-${++namespaces}`
const storage = (namespace = newNamespace()) =>
  sluiceStorage({ env, namespace, deadline: '10s', clock: 'edge' })

type Auth = { handler: (request: Request) => Promise<Response> }

/** An app with Better Auth. Two with the same namespace are two instances of an app. */
const app = (customStorage: ReturnType<typeof sluiceStorage>): Auth =>
  betterAuth({
    baseURL: 'http://localhost:3000',
    secret: 'a-secret-of-at-least-32-characters-for-tests',
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    emailAndPassword: { enabled: true },
    rateLimit: { enabled: true, customStorage },
    telemetry: { enabled: false },
    logger: { disabled: true },
  })

const signIn = ({ handler }: Auth, address: string) =>
  handler(
    new Request('http://localhost:3000/api/auth/sign-in/email', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ email: 'a@example.com', password: 'not-the-password' }),
    }),
  )

describe('Better Auth', () => {
  test('refuses the fourth sign-in in ten seconds, on each instance of the app.', async () => {
    const namespace = newNamespace()
    const apps = [app(storage(namespace)), app(storage(namespace))]
    for (const index of [0, 1, 0])
      expect((await signIn(apps[index]!, '203.0.113.7')).status).toBe(401)
    for (const one of apps) {
      const refused = await signIn(one, '203.0.113.7')
      expect(refused.status).toBe(429)
      expect(refused.headers.get('x-retry-after')).toMatch(/^([1-9]|10)$/)
    }
    expect((await signIn(apps[1]!, '203.0.113.8')).status).toBe(401)
  })

  test('admits sign-ins again after the wait that it has announced.', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const one = app(storage())
    for (let count = 0; count < 3; count += 1) await signIn(one, '203.0.113.7')
    vi.setSystemTime(Date.now() + 1)
    expect((await signIn(one, '203.0.113.7')).headers.get('x-retry-after')).toBe('10')
    vi.setSystemTime(Date.now() + 9_998)
    expect((await signIn(one, '203.0.113.7')).headers.get('x-retry-after')).toBe('1')
    vi.setSystemTime(Date.now() + 1)
    expect((await signIn(one, '203.0.113.7')).status).toBe(401)
  })
})

describe('consume', () => {
  test('is one atomic step: of 40 concurrent requests of two instances exactly max pass.', async () => {
    const namespace = newNamespace()
    const instances = [storage(namespace), storage(namespace)]
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        instances[index % 2]!.consume('one', { window: 60, max: 7 }),
      ),
    )
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(7)
    for (const { allowed, retryAfter } of answers) {
      expect(retryAfter).toEqual(allowed ? null : expect.any(Number))
    }
  })

  test('counts each rule of a key for itself, and admits nothing with max: 0.', async () => {
    const { consume } = storage()
    expect((await consume('one', { window: 60, max: 1 })).allowed).toBe(true)
    expect((await consume('one', { window: 60, max: 1 })).allowed).toBe(false)
    expect((await consume('one', { window: 30, max: 1 })).allowed).toBe(true)
    expect((await consume('two', { window: 60, max: 1 })).allowed).toBe(true)
    expect(await consume('three', { window: 60, max: 0 })).toEqual({
      allowed: false,
      retryAfter: 60,
    })
    expect((await consume('four', { window: 60, max: 20_000 })).allowed).toBe(true)
  })

  test.each([
    [1.5, 0.3, 1],
    [2, Infinity, 2],
    [Infinity, 10, 5],
    [1e300, 0, 5],
    [20_000, 400 * 86_400, 5],
    [0.9, 1.0005, 0],
  ])(
    'takes any rule, rounded to the stricter side: with max %d in %d s, %i of five requests pass.',
    async (max, window, admitted) => {
      vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
      const { consume } = storage()
      const answers = []
      for (let count = 0; count < 5; count += 1) answers.push(await consume('one', { window, max }))
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(admitted)
      for (const { allowed, retryAfter } of answers) {
        if (!allowed) expect(retryAfter).toBeGreaterThanOrEqual(Math.min(window, 1e9))
      }
    },
  )

  test('counts in the process while Redis does not answer.', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const dead = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9', UPSTASH_REDIS_REST_TOKEN: 'none' }
    const { consume } = sluiceStorage({ env: dead })
    const answers = []
    for (let count = 0; count < 3; count += 1)
      answers.push(await consume('one', { window: 60, max: 2 }))
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(answers[2]!.retryAfter).toBeGreaterThan(0)
  })
})
