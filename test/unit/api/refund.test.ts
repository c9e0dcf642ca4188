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
