/** `POST /_sluice/v1/decide` with idempotency keys, on the Worker in workerd, the bridge and a real Redis. */
import { createClient } from 'redis'
import { describe, expect, test } from 'vitest'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { commandsBetween } from '../../support/commands.ts'
import { newIp, policy, request, useDecideApi } from './decide-api.ts'

const api = useDecideApi()

describe('an Idempotency-Key', () => {
  const once = (key: string) => ({ headers: { 'Idempotency-Key': key } })

  test('Repetitions with one Idempotency-Key are charged once, whether concurrent or sequential.', async () => {
    const ip = newIp()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => api.decide(request(ip), once('fifty'))),
    )
    const later = await api.decide(request(ip), once('fifty'))
    for (const { status, body } of [...answers, later]) {
      expect([status, body]).toEqual([200, answers[0]!.body])
    }
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
    expect(later.headers.get('idempotent-replayed')).toBe('true')
    expect((await api.decide(request(ip))).body.limits[0]!.remaining).toBe(1)
  })

  test('An Idempotency-Key adds one command, and a repetition takes fewer commands than a decision.', async () => {
    const ip = newIp()
    const [first, second] = [
      await commandsBetween(api.redis.url, () => api.decide(request(ip), once('commands'))),
      await commandsBetween(api.redis.url, () => api.decide(request(ip), once('commands'))),
    ]
    expect(first).toEqual({ evalsha: 1, time: 1, mget: 1, set: 2 })
    expect(Object.values(second).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(3)
  })

  test('A repetition with an Idempotency-Key returns the same refusal and holds the same slots.', async () => {
    const ip = newIp()
    for (let time = 0; time < 3; time++) await api.decide(request(ip))
    const refused = await api.decide(request(ip), once('refused'))
    expect((await api.decide(request(ip), once('refused'))).body).toEqual(refused.body)
    const held = await api.decide(request(ip, '/slow'), once('slots'))
    const again = await api.decide(request(ip, '/slow'), once('slots'))
    expect(again.body).toEqual(held.body)
    expect(held.body.slot).toBeTypeOf('string')
    expect(
      (await api.decide({ ...request(ip, '/slow'), mode: 'peek' })).body.limits[0]!.remaining,
    ).toBe(1)
  })

  test('An Idempotency-Key covers a batch as a whole.', async () => {
    const asks = Array.from({ length: 100 }, (_, n) =>
      request(newIp(), '/wide', { headers: { x: `bx${n}`, y: `by${n}`, z: `bz${n}` } }),
    )
    const first = await api.decideEach(asks, once('batch'))
    const second = await api.decideEach(asks, once('batch'))
    expect(second.body).toEqual(first.body)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
  })

  test('A call with another body takes new slots after its Idempotency-Key has expired.', async () => {
    const ip = newIp()
    await api.decide(request(ip, '/slow'), once('again'))
    const redis = createClient({ url: api.redis.url })
    await redis.connect()
    for (const key of await redis.keys('sluice:1:{once-*')) await redis.del(key)
    redis.destroy()
    const { status } = await api.decide({ ...request(ip, '/slow'), cost: 2 }, once('again'))
    expect(status).toBe(429)
  })

  test('An Idempotency-Key with another body is refused.', async () => {
    const ip = newIp()
    await api.decide(request(ip), once('reused'))
    const other = await api.call<{ errors: object[] }>('/decide', request(newIp()), once('reused'))
    expect([other.status, other.body.errors]).toMatchObject([422, [{ path: 'Idempotency-Key' }]])
  })

  test.each([
    ['the name', { name: 'another' }],
    ['the limit', { limit: 2 }],
    ['the penalty', { penalty: { after: 5, within: '1m', ban: '1m', max: '1h' } }],
    ['the cost', { cost: 2 }],
  ] as const)(
    'An Idempotency-Key is refused after a change of %s of a policy.',
    async (what, change) => {
      const ip = newIp()
      const idempotency = once(`changed-${what.replace(' ', '-')}`)
      await api.decide(request(ip), idempotency)
      const policies = [{ ...policy, name: 'per-ip', ...change }]
      const changed = apiOf(api.start({ policies }, { env: apiTokens }).fetch)
      expect((await changed.decide(request(ip), idempotency)).status).toBe(422)
    },
  )

  test.each(['', 'x'.repeat(256), 'a b', 'é'])(
    'The Idempotency-Key %j is refused.',
    async (key) => {
      const { status } = await api.decide(request(newIp()), once(key))
      expect(status).toBe(400)
    },
  )
})
