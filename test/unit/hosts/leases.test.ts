/** Leases with the denial cache and the decision API. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { type Isolate, useGateway } from '../../support/gateway.ts'

const leased: PolicyOptions = {
  name: 'leased',
  algorithm: 'fixed-window',
  limit: 200,
  window: '1d',
  lease: { max: 10, ttl: '60s' },
}
const gateway = useGateway({ config: { policies: [leased] }, env: apiTokens })
const api = apiOf(gateway.fetch)

let clients = 0
const newIp = () => `198.51.100.${++clients}`
async function admitted(times: number, ip: string, { fetch } = gateway as Isolate) {
  let count = 0
  for (let time = 0; time < times; time++) if ((await fetch('/', { ip })).status === 200) count++
  return count
}

test('A flood on an exhausted key with a lease causes no call to Redis.', async () => {
  const ip = newIp()
  expect(await admitted(202, ip)).toBe(200)
  const before = gateway.httpRequests()
  expect(await admitted(100, ip)).toBe(0)
  expect(gateway.httpRequests()).toBe(before)
})

test('A flood on an exhausted key causes no call to Redis, while another policy has leased units.', async () => {
  const each: PolicyOptions = { name: 'each', limit: 5, window: '1d' }
  const sharedLease = gateway.start({
    policies: [{ ...leased, name: 'shared', limit: 100_000, key: 'global' }, each],
  })
  for (let time = 0; time < 50; time++) expect(await admitted(1, newIp(), sharedLease)).toBe(1)
  const ip = newIp()
  expect(await admitted(6, ip, sharedLease)).toBe(5)
  const before = gateway.httpRequests()
  expect(await admitted(50, ip, sharedLease)).toBe(0)
  expect(gateway.httpRequests()).toBe(before)
})

test('A reset takes effect at once, and units leased before it are not spent in addition to the new quota.', async () => {
  const ip = newIp()
  expect(await admitted(95, ip)).toBe(95)
  await api.operate('leased', 'reset', { key: ip })
  expect(await admitted(220, ip)).toBe(200)
})

test('Units refunded through the decision API can be taken again.', async () => {
  const ip = newIp()
  expect(await admitted(205, ip)).toBe(200)
  await api.call('/refund', { policy: 'leased', key: ip, cost: 7 })
  expect(await admitted(20, ip)).toBe(7)
})

test('Single decisions of the decision API use leases, and a list of decisions causes a call.', async () => {
  const ask = { policy: 'leased', key: newIp() }
  for (let time = 0; time < 60; time++) await api.decide(ask)
  const before = gateway.httpRequests()
  for (let time = 0; time < 20; time++) expect((await api.decide(ask)).body.allowed).toBe(true)
  expect(gateway.httpRequests() - before).toBeLessThan(5)
  const { body } = await api.decideEach([ask])
  expect(gateway.httpRequests() - before).toBeGreaterThan(0)
  expect(body[0]!.allowed).toBe(true)
})
