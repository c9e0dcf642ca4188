import { describe, expect, test } from 'vitest'
import type { LimitStatus } from '../../../src/core/base/decision.ts'
import { newIp, request, useDecideApi } from './decide-api.ts'

const api = useDecideApi()

describe('a refund', () => {
  test('A refund returns some or all of a charge, never above the quota, and nothing to a later window.', async () => {
    const ip = newIp()
    const { body } = await api.decide({ ...request(ip), cost: 3 })
    const refund = (cost: number, decidedAt = body.decidedAt) =>
      api.call<{ decidedAt: number; limits: { remaining: number }[] }>('/refund', {
        ...request(ip),
        cost,
        decidedAt,
      })
    expect((await refund(2)).body.limits).toMatchObject([{ policy: 'per-ip', remaining: 2 }])
    expect((await refund(5)).body.limits).toMatchObject([{ remaining: 3 }])
    await api.decide(request(ip))
    expect((await refund(1, body.decidedAt! - 3_600_000)).body.limits).toMatchObject([
      { remaining: 2 },
    ])
  })

  test('A list of refunds with an Idempotency-Key is refunded once.', async () => {
    const [ip, other] = [newIp(), newIp()]
    for (const one of [ip, other]) await api.decide({ ...request(one), cost: 3 })
    const body = [
      { policy: 'per-ip', key: ip, cost: 1 },
      { ...request(other), cost: 2 },
      request(ip, '/none'),
    ]
    const options = { headers: { 'Idempotency-Key': 'back' } }
    const first = await api.call<{ limits: object[] }[]>('/refund', body, options)
    expect(first.body.map(({ limits }) => limits)).toMatchObject([
      [{ remaining: 1 }],
      [{ remaining: 2 }],
      [],
    ])
    expect((await api.call('/refund', body, options)).body).toEqual(first.body)
    expect((await api.decide({ ...request(ip), mode: 'peek' })).body.limits[0]!.remaining).toBe(1)
  })

  test('A slot is released only with its id.', async () => {
    const ip = newIp()
    const { body } = await api.decide(request(ip, '/slow'))
    const peek = async () =>
      (await api.decide({ ...request(ip, '/slow'), mode: 'peek' })).body.limits[0]!.remaining
    await api.call('/refund', request(ip, '/slow'))
    await api.call('/refund', { ...request(ip, '/slow'), slot: 'somebody-elses' })
    expect(await peek()).toBe(1)
    await api.call('/refund', { ...request(ip, '/slow'), slot: body.slot })
    expect(await peek()).toBe(2)
  })

  test('A refund of 0 units releases a slot.', async () => {
    const ip = newIp()
    const { body } = await api.decide(request(ip, '/slow'))
    const answer = await api.call<LimitStatus>('/refund', {
      ...request(ip, '/slow'),
      cost: 0,
      slot: body.slot,
    })
    expect(answer.body.limits[0]!.remaining).toBe(2)
  })

  test('A refund with an impossible time is refused with 422.', async () => {
    const { status } = await api.call('/refund', { ...request(newIp()), at: 2 ** 53 - 1 })
    expect(status).toBe(422)
  })
})

describe('a settlement', () => {
  const settle = (ask: object, more: object) =>
    api.call<LimitStatus>('/settle', { ...ask, ...more })
  const remaining = async (ask: object) =>
    (await api.decide({ ...ask, mode: 'peek' })).body.limits.map((limit) => limit.remaining)

  test.each([
    [2, 1, 2],
    [1, 3, 0],
    [0, 2, 1],
    [3, undefined, 0],
  ])('of %i units that have used %s leaves %i.', async (cost, used, left) => {
    const ask = request(newIp())
    const { body: decision } = await api.decide({ ...ask, cost })
    expect((await settle(ask, { used, decision })).status).toBe(200)
    expect(await remaining(ask)).toEqual([left])
  })

  test('charges beyond the limit.', async () => {
    const ask = request(newIp())
    const { body: decision } = await api.decide({ ...ask, cost: 3 })
    await settle(ask, { used: 5, decision })
    const { body } = await api.decide(ask)
    expect(body).toMatchObject({ allowed: false, limits: [{ remaining: 0 }] })
  })

  test('changes only the limits that were charged.', async () => {
    const ask = request(newIp(), '/ghost')
    await api.decide(ask)
    const { body: decision } = await api.decide(ask) // above the shadow limit, which charges nothing
    expect((await settle(ask, { used: 0, decision })).body.limits).toEqual([])
    expect(await remaining(ask)).toEqual([0])
  })

  test('returns nothing to a later window, and releases a slot.', async () => {
    const [ip, ask] = [newIp(), request(newIp())]
    const { body } = await api.decide({ ...ask, cost: 3 })
    await settle(ask, { used: 0, decision: { ...body, decidedAt: body.decidedAt! - 3_600_000 } })
    expect(await remaining(ask)).toEqual([0])
    const slow = request(ip, '/slow')
    const { body: decision } = await api.decide(slow)
    await settle(slow, { decision })
    expect(await remaining(slow)).toEqual([2])
  })

  test('of several limits has each of them, and a repetition with an Idempotency-Key changes nothing.', async () => {
    const limits = [newIp(), newIp()].map((ip) => ['per-ip', ip])
    const { body: decision } = await api.decide({ limits, cost: 3 })
    expect(decision.allowed).toBe(true)
    const options = { headers: { 'Idempotency-Key': 'settled' } }
    for (const _ of [1, 2]) {
      const { body } = await api.call<LimitStatus>(
        '/settle',
        { limits, used: 1, decision },
        options,
      )
      expect(body.limits).toMatchObject([{ remaining: 2 }, { remaining: 2 }])
    }
    for (const [policy, key] of limits) expect(await remaining({ policy, key })).toEqual([2])
  })

  test.each([
    ['no decision', {}, 'decision'],
    ['a decision that was not answered', { decision: { allowed: true } }, 'decision'],
    ['used units that are no whole number', { used: 0.5 }, 'used'],
  ])('with %s is refused with 422.', async (_, more, path) => {
    const decision = { decidedAt: 1, limits: [] }
    const body = { ...request(newIp()), ...(path === 'used' && { decision }), ...more }
    const { status, body: answer } = await api.call<{ errors: { path: string }[] }>('/settle', body)
    expect([status, answer.errors[0]!.path.startsWith(path)]).toEqual([422, true])
  })
})

test('Limits are all charged, or none, in one answer with the fields of a response.', async () => {
  const [ip, other] = [newIp(), newIp()]
  const limits = [
    ['per-ip', ip],
    ['by-host', 'a.example'],
  ]
  await api.decide({ policy: 'per-ip', key: ip, cost: 2 })
  const both = await api.decide({ limits, cost: 2 })
  expect([both.status, both.body.reason]).toEqual([429, 'limited'])
  expect(both.headers.get('ratelimit')).toContain('"per-ip";r=1')
  const more = await api.decide({ limits: [limits[1], ['per-ip', other]] })
  expect([more.status, more.body.limits.map(({ remaining }) => remaining)]).toEqual([200, [2, 2]])
  const twice = await api.call<{ detail: string }>('/decide', { limits: [limits[0], limits[0]] })
  expect([twice.status, twice.body.detail]).toEqual([
    422,
    'limits: expected each limit and key once (charge more units with cost), got "per-ip" twice with one key',
  ])
})
