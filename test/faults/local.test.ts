import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { AlgorithmName, PolicyOptions } from '../../src/core/config/options.ts'
import { algorithms } from '../../src/core/connection/algorithms/index.ts'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'
import { secrets } from '../support/secrets.ts'

const LIMIT = 20
const SHARE = 5 // a quarter
const names = Object.keys(algorithms) as AlgorithmName[]
const policies = names.map(
  (algorithm): PolicyOptions => ({
    name: algorithm,
    algorithm,
    limit: LIMIT,
    window: '1d',
    onStoreError: 'local',
    localShare: 0.25,
    match: { path: [`/${algorithm}`, '/all'] },
  }),
)

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
  await stack.renew({ policies, deadline: '5s' })
})
afterEach(() => stack.faults.set(null))
afterAll(() => stack.stop())

const ask = (path: string, ip: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => stack.get(path, { 'cf-connecting-ip': ip })))
const statuses = (answers: { status: number }[]) => ({
  passed: answers.filter(({ status }) => status === 200).length,
  refused: answers.filter(({ status }) => status === 429).length,
})

describe.each(names)('the local store, %s', (algorithm) => {
  test('Without Redis each client gets its local share, and then refusals with Retry-After and without RateLimit.', async () => {
    await stack.faults.set('reset')
    const first = await ask(`/${algorithm}`, secrets.ipv4, 30)
    const second = await ask(`/${algorithm}`, '198.51.100.1', 30)
    await stack.faults.set(null)
    expect(statuses(first)).toEqual({ passed: SHARE, refused: 30 - SHARE })
    expect(statuses(second)).toEqual({ passed: SHARE, refused: 30 - SHARE })
    const refused = first.find(({ status }) => status === 429)!
    expect(JSON.parse(refused.body).retryAfterMs).toBeGreaterThan(0)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const { headers } of [...first, ...second]) expect(headers.has('ratelimit')).toBe(false)
  })
})

test('When Redis is reachable again, its counters decide, and they do not contain the charges of the local store.', async () => {
  await vi.waitFor(
    async () => expect((await stack.get('/fixed-window')).headers.has('ratelimit')).toBe(true),
    { timeout: 10_000, interval: 50 },
  )
  const client = '198.51.100.3'
  expect(statuses(await ask('/fixed-window', client, 30))).toEqual({ passed: LIMIT, refused: 10 })
})

testNoLeaks(() => stack)
