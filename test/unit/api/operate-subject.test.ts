/** Operations on a client whose subject is known and whose address is not, on the Worker in workerd and a real Redis. */
import { createClient } from 'redis'
import { beforeAll, describe, expect, test } from 'vitest'
import type { LimitStatus } from '../../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { useApi } from '../../support/api-stack.ts'

const counted = { limit: 3, window: '1h', algorithm: 'fixed-window' } as const
const policy = { ...counted, penalty: 'manual' } as const
const config: ConfigOptions = {
  tables: { plans: {} },
  policies: [
    { ...policy, name: 'per-ip' },
    { ...counted, name: 'neighbour', limit: 100 },
    { ...policy, name: 'monthly', window: 'month', match: { path: '/monthly' } },
    { ...policy, name: 'slots', algorithm: 'concurrency', match: { path: '/slots' } },
    {
      ...policy,
      name: 'planned',
      limits: { pro: 5 },
      plan: { key: 'header:x-plan', table: 'plans' },
      key: 'header:x-customer',
      match: { path: '/planned' },
    },
  ],
}

const api = useApi(config)
let redis: ReturnType<typeof createClient>
beforeAll(async () => {
  redis = createClient({ url: api.redis.url })
  await redis.connect()
  return () => redis.destroy()
})

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const keys = async () => (await redis.keys('sluice:1:{*')).sort()
const statusOf = async (ip: string) => (await api.fetch('/', { ip })).status
const operate = (name: string, operation: string, body: unknown) =>
  api.operate<LimitStatus>(name, operation, body)

/** Makes a call for a client without a record, and returns the subject of its new record. */
async function subjectAfter(call: () => Promise<unknown>): Promise<string> {
  const before = await keys()
  await call()
  const added = (await keys()).filter((key) => !before.includes(key))
  expect(added).toHaveLength(1)
  return /\{(.*)\}/.exec(added[0]!)![1]!
}

describe('an operation on a subject', () => {
  test('A ban of a subject refuses the client that has it, and no other client.', async () => {
    const [ip, other] = [newIp(), newIp()]
    const subject = await subjectAfter(() => api.fetch('/', { ip }))
    expect(subject).toMatch(/^[\w-]{16}$/)
    const { status, body } = await operate('per-ip', 'ban', { subject, for: '30m' })
    expect([status, body.limits]).toMatchObject([
      200,
      [{ policy: 'per-ip', allowed: false, remaining: 0, bannedForMs: 1_800_000 }],
    ])
    expect(await statusOf(ip)).toBe(429)
    expect((await api.decide({ policy: 'per-ip', key: ip })).body.reason).toBe('banned')
    expect(await statusOf(other)).toBe(200)
    expect((await operate('per-ip', 'unban', { subject })).body.limits).toMatchObject([
      { allowed: true },
    ])
    expect(await statusOf(ip)).toBe(200)
  })

  test('A peek and a reset of a subject have the answers of its key.', async () => {
    const ip = newIp()
    const subject = await subjectAfter(() => api.decide({ policy: 'per-ip', key: ip, cost: 2 }))
    const limits = async (target: object) =>
      (await operate('per-ip', 'peek', target)).body.limits.map(
        ({ resetAfterMs: _, nextAfterMs: __, ...state }) => state,
      )
    expect(await limits({ subject })).toMatchObject([{ policy: 'per-ip', remaining: 1 }])
    expect(await limits({ subject })).toEqual(await limits({ key: ip }))
    const { body } = await operate('per-ip', 'reset', { subject })
    expect(body.limits).toMatchObject([{ remaining: 3, resetAfterMs: 0 }])
    expect(await limits({ key: ip })).toMatchObject([{ remaining: 3 }])
  })

  test('An operation on a subject changes only the named policy.', async () => {
    const ip = newIp()
    const subject = await subjectAfter(() => api.fetch('/', { ip }))
    await operate('per-ip', 'reset', { subject })
    expect((await operate('neighbour', 'peek', { subject })).body.limits).toMatchObject([
      { remaining: 99 },
    ])
  })

  test('A calendar window and slots are found by the subject.', async () => {
    for (const [name, remaining] of Object.entries({ monthly: 1, slots: 2 })) {
      const ask = { policy: name, key: newIp(), cost: name === 'slots' ? 1 : 2 }
      const subject = await subjectAfter(() => api.decide(ask))
      expect((await operate(name, 'peek', { subject })).body.limits).toMatchObject([{ remaining }])
    }
  })

  test('The plan selects the size of the limit of a subject.', async () => {
    const ask = { policy: 'planned', key: 'acme', plan: 'pro', cost: 4 }
    const subject = await subjectAfter(() => api.decide(ask))
    const peek = async (more: object) =>
      (await operate('planned', 'peek', { subject, ...more })).body.limits[0]
    expect(await peek({ plan: 'pro' })).toMatchObject({ limit: 5, remaining: 1 })
    expect(await peek({})).toMatchObject({ limit: 3, remaining: 0 })
  })

  test('A peek at a subject that no client has makes no record.', async () => {
    const before = await keys()
    const { status, body } = await operate('per-ip', 'peek', { subject: 'A-_0123456789xyz' })
    expect([status, body.limits]).toMatchObject([200, [{ remaining: 3 }]])
    expect(await keys()).toEqual(before)
  })

  test('A policy without a penalty bans no subject.', async () => {
    const { status } = await operate('neighbour', 'ban', { subject: 'A'.repeat(16), for: '1h' })
    expect(status).toBe(409)
  })

  const subject = 'A'.repeat(16)
  test.each([
    ['subject', { subject: 'A'.repeat(15) }],
    ['subject', { subject: 'A'.repeat(17) }],
    ['subject', { subject: '' }],
    ['subject', { subject: `${'A'.repeat(15)}*` }],
    ['subject', { subject: `${'A'.repeat(14)}}{` }],
    ['subject', { subject: `${'A'.repeat(16)}\n` }],
    ['subject', { subject: 1_234_567_890_123_456 }],
    ['subject', { subject: [subject] }],
    ['subject', { subject: null }],
    ['subject', { subject, key: '203.0.113.7' }],
    ['subject', { subject, request: { url: 'https://a.example/' } }],
    ['plan', { subject, plan: 'pro' }],
    ['plan', { subject, plan: 7 }],
    ['cost', { subject, cost: 1 }],
  ])('The answer to an invalid body names its field %s: %j.', async (path, body) => {
    const before = await keys()
    for (const operation of ['peek', 'reset', 'ban', 'unban']) {
      const time = operation === 'ban' ? { for: '1h' } : {}
      const answer = await api.operate<{ errors: object[] }>('per-ip', operation, {
        ...body,
        ...time,
      })
      expect([answer.status, answer.body.errors]).toMatchObject([422, [{ path }]])
    }
    expect(await keys()).toEqual(before)
  })

  test('A trial and a decision need a key or a request.', async () => {
    expect((await api.operate('per-ip', 'try', { subject })).status).toBe(422)
    expect((await api.decide({ policy: 'per-ip', subject })).status).toBe(422)
  })
})
