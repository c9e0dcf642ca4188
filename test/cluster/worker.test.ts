/** The deployed Worker with `cluster()`, in workerd, in front of a Redis Cluster. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningOrigin, startOrigin } from '../../cli/dev/origin.ts'
import type { Decision } from '../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { cluster } from '../../src/features/cluster/index.ts'
import { turns } from '../../src/features/turns/index.ts'
import { type RunningWorker, startWorker } from '../../tools/worker.ts'
import { useCluster } from '../support/cluster.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'

const { running, httpOf } = useCluster()

const quota = { algorithm: 'fixed-window', limit: 5, window: '1d', onMissingKey: 'skip' } as const
const paced = { ...quota, algorithm: 'gcra', window: '1s', wait: '5s' } as const
const config: ConfigOptions = {
  use: [cluster(), turns()],
  deadline: '10s', // a busy machine must not turn a wait into a store error
  live: { from: 'redis', every: '1s' },
  policies: [
    { ...quota, name: 'user', key: 'header:x-user', overrides: true, onStoreError: 'deny' },
    { ...quota, name: 'tenant', key: 'header:x-tenant', limit: 50, onStoreError: 'deny' },
    { ...quota, name: 'shadow', key: 'header:x-tenant', limit: 1, mode: 'shadow' },
    {
      ...quota,
      name: 'log',
      key: 'header:x-log',
      algorithm: 'sliding-log',
      limit: 1,
      penalty: { after: 1, within: '1h', ban: '1h' },
    },
    { ...paced, name: 'paced-user', key: 'header:x-paced-user', limit: 10 },
    { ...paced, name: 'paced-tenant', key: 'header:x-paced-tenant', limit: 5 },
  ],
}
const [apiToken, operateToken] = ['a-api-token-for-tests', 'an-operate-token-for-tests']

let origin: RunningOrigin
let worker: RunningWorker
beforeAll(async () => {
  origin = await startOrigin()
  const built = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
  worker = await startWorker(built, {
    env: {
      UPSTASH_REDIS_REST_URL: running.bridge.url,
      UPSTASH_REDIS_REST_TOKEN: running.bridge.token,
      SLUICE_SECRET: 'a-secret-of-names',
      SLUICE_API_TOKEN: apiToken,
      SLUICE_OPERATE_TOKEN: operateToken,
      ORIGIN: origin.url,
      CONFIG: JSON.stringify(config),
    },
  })
})
afterAll(async () => {
  await worker?.stop()
  await origin?.close()
})

let users = 0
const newUser = () => `user-${++users}`
async function get(headers: Record<string, string>) {
  const response = await fetch(worker.url, { headers })
  await response.text()
  expect(response.headers.has('ratelimit')).toBe(true) // Redis has decided
  return response.status
}
async function api<T>(
  path: string,
  body?: unknown,
  { token = apiToken, method = body ? 'POST' : 'GET', key = '' } = {},
) {
  const response = await fetch(`${worker.url}/_sluice/v1${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${token}`, ...(key && { 'Idempotency-Key': key }) },
  })
  return (await response.json()) as T
}
const counts = (statuses: number[]) => ({
  passed: statuses.filter((status) => status === 200).length,
  refused: statuses.filter((status) => status === 429).length,
  all: statuses.length,
})

test('Concurrent requests of many clients share calls, and each client gets its quota.', async () => {
  const clients = Array.from({ length: 20 }, newUser)
  const sent = clients.flatMap((user) => Array.from({ length: 7 }, () => ({ 'x-user': user })))
  let statuses: number[] = []
  const http = await httpOf(async () => {
    statuses = await Promise.all(sent.map(get))
  })
  expect(counts(statuses)).toEqual({ passed: 100, refused: 40, all: 140 })
  expect(http).toBeLessThan(140 / 2)
  expect(worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})

test('A request with keys in several slots is charged in all of them or in none.', async () => {
  const [tenant, ...clients] = [newUser(), ...Array.from({ length: 20 }, newUser)]
  const sent = clients.flatMap((user) =>
    Array.from({ length: 4 }, () => ({ 'x-user': user, 'x-tenant': tenant })),
  )
  const { passed, refused, all } = counts(await Promise.all(sent.map(get)))
  expect(passed + refused).toBe(all)
  expect(passed).toBeLessThanOrEqual(50)
  const left = async (policy: string, key: string) =>
    (await api<Decision>('/decide', { policy, key, mode: 'peek' })).limits[0]!.remaining
  await expect.poll(() => left('tenant', tenant)).toBe(50 - passed)
  await expect
    .poll(async () => {
      const spent = await Promise.all(clients.map(async (user) => 5 - (await left('user', user))))
      return spent.reduce((sum, units) => sum + units, 0)
    })
    .toBe(passed)
})

test('A request with keys in several slots waits for its turn in all of them, and charges none if one is too late.', async () => {
  const names = { 'x-paced-user': newUser(), 'x-paced-tenant': newUser() }
  const begun = Date.now()
  const statuses = Array.from({ length: 4 }, () => get(names))
  expect(counts(await Promise.all(statuses)).passed).toBe(4)
  expect(Date.now() - begun).toBeGreaterThanOrEqual(600) // a place each 200 ms for the tenant
  const other = newUser()
  const flood = Array.from({ length: 40 }, () =>
    get({ 'x-paced-user': other, 'x-paced-tenant': names['x-paced-tenant'] }),
  )
  const { passed, refused } = counts(await Promise.all(flood))
  expect([passed + refused, refused > 0]).toEqual([40, true])
  const left = async () =>
    (await api<Decision>('/decide', { policy: 'paced-user', key: other, mode: 'peek' })).limits[0]!
  await expect.poll(async () => (await left()).remaining).toBe(1)
})

test('An operator sets the limit of a key, lists it, and removes it.', async () => {
  const key = newUser()
  const operator = { token: operateToken }
  const path = `/policies/user/keys/${key}/limit`
  await api(path, { limit: 2, for: '1h' }, { ...operator, method: 'PUT' })
  const sent = Array.from({ length: 4 }, () => ({ 'x-user': key }))
  expect(counts(await Promise.all(sent.map(get)))).toMatchObject({ passed: 2, refused: 2 })
  const list = async () => {
    const report = await api<{ overrides: { limit: number }[] }>(
      '/policies/user/keys',
      undefined,
      operator,
    )
    return report.overrides.map(({ limit }) => limit)
  }
  expect(await list()).toEqual([2])
  await api(path, undefined, { ...operator, method: 'DELETE' })
  expect(await list()).toEqual([])
})

test('The live document of the cluster replaces the policies, and /policies reports the cluster.', async () => {
  const live = { policies: [{ ...quota, name: 'user', key: 'header:x-user', limit: 1 }] }
  const headers = { authorization: `Bearer ${running.bridge.token}` }
  const body = JSON.stringify(['SET', 'sluice:live', JSON.stringify(live)])
  await fetch(running.bridge.url, { method: 'POST', headers, body })
  const report = () =>
    api<{ store: object; policies: { limit: number }[] }>('/policies', undefined, {
      token: operateToken,
    })
  await expect.poll(async () => (await report()).policies.map(({ limit }) => limit)).toEqual([1])
  expect((await report()).store).toMatchObject({ status: 'ok' })
})
