/** Notices about clients near their limit, received by a real server on loopback. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { LimitState } from '../../../../src/core/base/decision.ts'
import type { DecisionEvent } from '../../../../src/features/observe/event.ts'
import { createNearLimit, type NearLimit } from '../../../../src/features/observe/near-limit.ts'
import {
  keyOf,
  type Receiver,
  SECRET,
  signatureOf,
  startReceiver,
} from '../../../support/webhook-receiver.ts'

const MINUTE = 60_000
const START = 1_789_000_000_000 - (1_789_000_000_000 % MINUTE)

let receiver: Receiver
let now: number
let lines: string[]
let background: Promise<unknown>[]
let isolate: NearLimit

async function pass(ms: number): Promise<void> {
  now += ms
}
const create = (thresholds = [80, 90, 100], sleep = pass) =>
  createNearLimit({
    url: receiver.url,
    thresholds,
    log: (event, code) => void lines.push(`${event} ${code}`),
    clock: () => now,
    sleep,
  })
/** The wait of a request that was cancelled. */
const never = () => new Promise<void>(() => {})

beforeEach(async () => {
  receiver = await startReceiver()
  now = START
  lines = []
  background = []
  isolate = create()
})
afterEach(() => receiver.close())

interface Fact {
  event?: Partial<DecisionEvent>
  limit?: Partial<LimitState>
  env?: Record<string, unknown>
  decidedAt?: number | undefined
  isFixedWindow?: boolean
}

/** Reports a decision after which `used` of 10 units are used, 5 s into a minute, and waits for its notices. */
async function decided(used: number, { event, limit, ...fact }: Fact = {}, on = isolate) {
  on.decided(
    {
      time: now + 3,
      decidedBy: 'store',
      subject: 'AAAAAAAAAAAAAAAA',
      remainingShare: (10 - used) / 10,
      ...event,
    },
    {
      policy: 'per-key',
      mode: 'enforce',
      allowed: true,
      limit: 10,
      remaining: 10 - used,
      windowMs: MINUTE,
      cost: 1,
      retryAfterMs: 0,
      resetAfterMs: 55_000,
      nextAfterMs: 55_000,
      ...limit,
    },
    {
      env: { SLUICE_WEBHOOK_SECRET: SECRET },
      waitUntil: (promise) => void background.push(promise),
      decidedAt: START + 5_000,
      isFixedWindow: true,
      ...fact,
    },
  )
  while (background.length > 0) await background.shift()
}
const thresholds = () => receiver.notices().map(({ threshold }) => threshold)

test('A notice is a signed JSON document with the policy, the client, the threshold and the state.', async () => {
  await decided(8)
  const [post] = receiver.posts
  expect(JSON.parse(post!.body)).toEqual({
    v: 1,
    type: 'quota.near-limit',
    time: START + 3,
    policy: 'per-key',
    subject: 'AAAAAAAAAAAAAAAA',
    threshold: 80,
    limit: 10,
    remaining: 2,
    windowMs: MINUTE,
    resetAt: START + MINUTE,
  })
  expect(post!.headers['webhook-signature']).toBe(signatureOf(post!, keyOf(SECRET)))
})

describe('thresholds', () => {
  test('Each threshold of a window has exactly one notice, however many requests follow.', async () => {
    for (const used of [1, 5, 7]) await decided(used)
    expect(thresholds()).toEqual([])
    for (const used of [8, 8, 8, 9, 9, 10, 10, 10, 8, 10]) await decided(used)
    expect(thresholds()).toEqual([80, 90, 100])
    expect(new Set(receiver.ids()).size).toBe(3)
  })

  test('A request that crosses several thresholds sends the notice of each.', async () => {
    await decided(10)
    expect(thresholds().sort((one, other) => one - other)).toEqual([80, 90, 100])
    await decided(10)
    expect(receiver.posts).toHaveLength(3)
  })

  test('The next window, another client and another policy have notices of their own.', async () => {
    await decided(8)
    await decided(8, { decidedAt: START + MINUTE + 5_000 })
    await decided(8, { event: { subject: 'BBBBBBBBBBBBBBBB' } })
    await decided(8, { limit: { policy: 'other' } })
    expect(new Set(receiver.ids()).size).toBe(4)
    await decided(8)
    expect(receiver.posts).toHaveLength(4)
  })

  test('Concurrent decisions of one isolate send one notice.', async () => {
    await Promise.all(Array.from({ length: 50 }, () => decided(8)))
    expect(thresholds()).toEqual([80])
  })

  test('The thresholds may be in any order, and repeated.', async () => {
    isolate = create([50, 100, 25, 50])
    for (const used of [2, 3, 6, 10]) await decided(used)
    expect(thresholds()).toEqual([25, 50, 100])
  })

  test('Without thresholds there is no notice.', async () => {
    isolate = create([])
    await decided(10)
    expect(receiver.posts).toEqual([])
  })
})

describe('decisions without a notice', () => {
  test.each<[string, Fact]>([
    ['of a policy in shadow mode', { limit: { mode: 'shadow' } }],
    ['of a concurrency policy', { limit: { unit: 'concurrent-requests' } }],
    ['during a ban', { limit: { bannedForMs: 1000, resetAfterMs: 3_600_000 } }],
    ['from the denial cache', { event: { decidedBy: 'cache' } }],
    ['of the local store', { event: { decidedBy: 'local' } }],
    ['without a time of the store', { decidedAt: undefined }],
    ['without a secret', { env: {} }],
  ])('A decision %s sends no notice.', async (_, fact) => {
    await decided(10, fact)
    expect(receiver.posts).toEqual([])
  })

  test.each(['subject', 'remainingShare'])('An event without %s sends no notice.', async (name) => {
    await decided(10, { event: { [name]: undefined } as never })
    expect(receiver.posts).toEqual([])
  })

  test('A missing secret is logged once, at the first decision, even far from the limit.', async () => {
    for (const used of [1, 5, 10]) await decided(used, { env: {} })
    expect(lines).toEqual(['webhook no-secret'])
    expect(isolate.dropped()).toBe(0)
  })

  test('A decision is near if it has reached the lowest threshold, and if there is a secret.', () => {
    const env = { SLUICE_WEBHOOK_SECRET: SECRET }
    const shares = [undefined, 1, 0.21, 0.2, 0]
    expect(shares.filter((share) => isolate.isNear(share, env))).toEqual([0.2, 0])
    expect(isolate.isNear(0, {})).toBe(false)
  })

  test('A decision with leased units sends a notice.', async () => {
    await decided(8, { event: { decidedBy: 'lease' } })
    expect(thresholds()).toEqual([80])
  })
})

describe('deliveries', () => {
  test('A request that crosses several thresholds uses one connection at a time: a Worker has six for all of its calls.', async () => {
    isolate = create([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    let open = 0
    let most = 0
    receiver.answer = (response) => {
      open += 1
      most = Math.max(most, open)
      setTimeout(() => {
        open -= 1
        response.end()
      }, 5)
    }
    await decided(10)
    expect(thresholds()).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    expect(most).toBe(1)
  })

  test('If the receiver is down, all notices of a request share one deadline and each is counted.', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    await decided(10)
    expect(isolate.dropped()).toBe(3)
    expect(now - START).toBeLessThanOrEqual(25_000)
  })

  test('A decision does not wait for the receiver.', () => {
    isolate = create([80, 90, 100], never)
    const fetching = vi.spyOn(globalThis, 'fetch')
    for (let index = 0; index < 1_000; index += 1) {
      void decided(10, { event: { subject: `client-${index}` } })
    }
    expect(fetching).not.toHaveBeenCalled()
    fetching.mockRestore()
  })

  test('A receiver that fails for a minute gets the notice of a client that is still near its limit, with the same id.', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    await decided(8)
    const attempts = receiver.posts.length
    expect(isolate.dropped()).toBe(1)
    await decided(8)
    expect(receiver.posts).toHaveLength(attempts)
    now += MINUTE
    receiver.answer = (response) => response.end()
    await decided(8)
    await decided(8)
    expect(receiver.posts).toHaveLength(attempts + 1)
    expect(new Set(receiver.ids()).size).toBe(1)
  })

  test('A notice of a cancelled request is sent again after a minute.', async () => {
    isolate = create([80], never)
    receiver.answer = (response) => response.writeHead(500).end()
    void decided(8)
    await expect.poll(() => receiver.posts.length).toBe(1)
    receiver.answer = (response) => response.end()
    now += MINUTE - 1
    await decided(8)
    expect(receiver.posts).toHaveLength(1)
    now += 1
    await decided(8)
    expect(receiver.posts).toHaveLength(2)
  })

  test('A notice that the receiver rejects is not sent again.', async () => {
    receiver.answer = (response) => response.writeHead(403).end()
    await decided(8)
    now += 10 * MINUTE
    await decided(8)
    expect(receiver.posts).toHaveLength(1)
    expect(isolate.dropped()).toBe(1)
  })
})

const hostile = [
  '',
  ' ',
  '"',
  '\\',
  '\r\nx-injected: 1',
  '\0',
  '\u2028',
  '\ud800',
  '\udfff',
  '__proto__',
  'ip=203.0.113.7,header=a b',
  '","80]',
  '<script>alert(1)</script>',
  'x'.repeat(10_000),
]
test('Any label of a client gives a document that parses to the label, and an id of its own.', async () => {
  for (const subject of hostile) await decided(8, { event: { subject } })
  expect(receiver.notices().map(({ subject }) => subject)).toEqual(hostile)
  expect(new Set(receiver.ids()).size).toBe(hostile.length)
  for (const post of receiver.posts) {
    expect(post.headers['webhook-id']).toMatch(/^[0-9a-f]{64}$/)
    expect(post.headers['x-injected']).toBeUndefined()
    expect(post.headers['webhook-signature']).toBe(signatureOf(post, keyOf(SECRET)))
  }
})
