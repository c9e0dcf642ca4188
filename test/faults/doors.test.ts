/** Calls by name and key while Redis is killed, hangs or is slow: each door decides in time, and `onStoreError` says what. */
import { type Bridge, type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import type { Decision, LimitStatus } from '../../src/core/base/decision.ts'
import { createSluice } from '../../src/hosts/app/sluice.ts'
import { deployed } from '../../src/hosts/worker/deployed.ts'
import { createGateway } from '../../src/hosts/worker/gateway.ts'
import { limits } from '../../src/limits/limits.ts'
import { RateLimit } from '../../src/rpc.ts'
import { borrowRedis } from '../support/borrow-redis.ts'
import { type Faults, type FaultText, startFaults } from '../support/fault-proxy/index.ts'

// The platform makes entrypoints with this class. rpc.test.ts runs them in workerd.
vi.mock('cloudflare:workers', () => ({
  WorkerEntrypoint: class {
    readonly ctx: object
    readonly env: object
    constructor(ctx: object, env: object) {
      this.ctx = ctx
      this.env = env
    }
  },
}))

const TOKEN = 'a-token-of-the-decision-api-for-tests'
const LIMIT = 40
const terms = { limit: LIMIT, window: '1h', algorithm: 'sliding-log' } as const
/** What a call gets that the store does not answer. */
const policies = {
  local: { ...terms, localShare: 0.05 }, // two calls
  allow: { ...terms, onStoreError: 'allow' },
  deny: { ...terms, onStoreError: 'deny' },
} as const
type Name = keyof typeof policies
const named = Object.entries(policies).map(([name, one]) => {
  return { ...one, name, key: 'header:x-user' as const }
})

interface Door {
  limit: (name: Name, key: string) => Promise<Decision>
  peek: (name: Name, key: string) => Promise<{ remaining: number }>
  reset: (name: Name, key: string) => Promise<LimitStatus>
}
interface Settings {
  namespace: string
  deadline: `${number}ms`
}
const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
const gatewayOf = (settings: Settings) =>
  createGateway({ ...settings, policies: named, accept: 'no-origin' })

const doors: Record<string, (settings: Settings, env: object) => Door> = {
  limits: (settings, env) => limits(policies, { ...settings, env }),

  createSluice(settings, env) {
    const sluice = createSluice({ ...settings, policies: named, clientAddress: 'socket' })
    return {
      limit: (name, key) => sluice.limit(name, key, { env }),
      peek: (name, key) => sluice.peek(name, key, { env }),
      reset: (name, key) => sluice.reset(name, key, { env }),
    }
  },

  client(settings, env) {
    const gateway = gatewayOf(settings)
    return createClient({
      url: 'https://limits.example.com',
      token: TOKEN,
      deadlineMs: 20_000,
      onError: 'throw',
      fetch: async (url, init) => gateway.fetch(new Request(url, init), env as never, context),
    })
  },

  rpc(settings, env) {
    gatewayOf(settings)
    const { limiter } = deployed
    const entry = () => {
      deployed.limiter = limiter!
      return new (RateLimit as unknown as new (ctx: object, env: object) => RateLimit)(context, env)
    }
    return {
      limit: (policy, key) => entry().limit({ policy, key }),
      peek: (policy, key) => entry().peek({ policy, key }),
      reset: (policy, key) => entry().reset({ policy, key }),
    }
  },
}

let redis: RunningRedis
let bridge: Bridge
let faults: Faults
beforeAll(async () => {
  redis = await borrowRedis()
  bridge = await startBridge({ redis: redis.url, token: 'token' })
  faults = await startFaults({ target: bridge.url })
})
afterAll(async () => {
  await faults?.close()
  await bridge?.close()
  await redis?.stop()
})
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))
afterEach(() => faults.set(null))

let runs = 0
/** A door in an isolate of its own, with counters of its own. */
function open(make: (typeof doors)[string], deadline: Settings['deadline']): Door {
  runs += 1
  const env = {
    ...{ UPSTASH_REDIS_REST_URL: faults.url, UPSTASH_REDIS_REST_TOKEN: bridge.token },
    ...{ SLUICE_API_TOKEN: TOKEN, SLUICE_OPERATE_TOKEN: TOKEN },
  }
  return make({ namespace: `doors-${runs}`, deadline }, env)
}

const broken: [name: string, fault: FaultText][] = [
  ['is killed', 'refuse'],
  ['is killed during a call', 'reset-after'],
  ['hangs', 'hang'],
  ['is slower than the deadline', 'late=60000'],
]

describe.each(Object.entries(doors))('The door %s', (_, make) => {
  test.each(broken)(
    'While Redis %s, onStoreError decides within the deadline, and afterwards Redis again.',
    async (_, fault) => {
      const door = open(make, '400ms')
      await faults.set(fault)
      const start = performance.now()
      const [local, allow, deny] = await Promise.all(
        (['local', 'allow', 'deny'] as const).map((name) =>
          Promise.all([1, 2, 3].map(() => door.limit(name, 'ann'))),
        ),
      )
      expect(performance.now() - start).toBeLessThan(4_000) // a busy machine
      const passed = (all: Decision[]) => all.filter(({ allowed }) => allowed).length
      expect([local, allow, deny].map((all) => passed(all!))).toEqual([2, 3, 0])
      for (const [name, all] of Object.entries({ local, allow, deny }))
        for (const { reason, fallback } of all!)
          expect([reason, fallback]).toEqual(['store-error', name])
      // Operators have 5 s, which these tests do not wait for.
      if (fault.startsWith('re'))
        // Each call in a millisecond of its own counts as a failure, and the fifth opens the circuit.
        await expect(door.reset('local', 'ann')).rejects.toThrow(
          /unreachable|circuit-open|answered 503/,
        )

      await faults.set(null)
      const again = () => door.limit('deny', 'ben')
      await expect
        .poll(again, { timeout: 15_000 })
        .toMatchObject({ allowed: true, reason: 'within-limit' })
    },
  )

  test('Of 64 concurrent calls to a slow Redis exactly the limit pass.', async () => {
    const door = open(make, '20000ms')
    await faults.set('delay=50')
    const all = await Promise.all(Array.from({ length: 64 }, () => door.limit('local', 'ann')))
    expect(all.filter(({ allowed }) => allowed)).toHaveLength(LIMIT)
    expect(all.filter(({ reason }) => reason === 'store-error')).toEqual([])
  })

  test('A call that is never awaited charges, and without Redis it fails in silence.', async () => {
    const door = open(make, '400ms')
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    void door.limit('deny', 'ann')
    await expect.poll(() => door.peek('deny', 'ann')).toMatchObject({ remaining: LIMIT - 1 })
    for (const [, fault] of broken) {
      await faults.set(fault)
      void door.limit('deny', 'ben')
    }
    await new Promise((resolve) => setTimeout(resolve, 600)) // the deadline
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})
