/** Charges of calls whose reply comes after the deadline, or not at all. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { decided, type FaultStack, startFaultStack } from '../support/fault-stack.ts'

const slots = { algorithm: 'concurrency', window: '10m' } as const
const policies: PolicyOptions[] = [
  { ...slots, name: 'denied', limit: 2, onStoreError: 'deny', match: { path: ['/x', '/slow/*'] } },
  { ...slots, name: 'passing', limit: 1, match: { path: '/passing' } },
  { name: 'failures', limit: 5, window: '1d', countOnly: '4xx', match: { path: '/failures' } },
  { name: 'few', limit: 2, window: '1d', match: { path: '/few' } },
]

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
  await stack.renew({ deadline: '400ms', policies })
})
afterAll(() => stack.stop())

const eventually = (check: () => Promise<void>) =>
  vi.waitFor(check, { timeout: 30_000, interval: 200 })

test.each([
  ['late=1000', '198.51.100.1'],
  ['lose', '198.51.100.2'],
] as const)(
  'A slot that a request refused by the fallback may have taken is released (%s).',
  async (fault, ip) => {
    const both = async (path: string) => {
      const answers = [0, 1].map(() => stack.get(path, { 'cf-connecting-ip': ip }))
      return (await Promise.all(answers)).map(({ status }) => status)
    }
    await decided(stack, '/x', { 'cf-connecting-ip': ip })
    await stack.faults.set(fault, { next: 2 })
    expect(await both('/x')).toEqual([503, 503])
    await stack.faults.set(null)
    await eventually(async () => expect(await both('/slow/300')).toEqual([200, 200]))
  },
)

test('A slot that a request admitted by the fallback may have taken is released when its response ends.', async () => {
  await decided(stack, '/passing')
  await stack.faults.set('late=1000', { next: 1 })
  expect((await stack.get('/passing')).status).toBe(200) // onStoreError of concurrency defaults to allow
  await stack.faults.set(null)
  await eventually(async () => expect((await stack.get('/passing')).status).toBe(200))
})

test('A unit that does not count is refunded, also if the reply came late.', async () => {
  await decided(stack, '/failures')
  await stack.faults.set('late=1000', { next: 1 })
  expect((await stack.get('/failures')).status).toBe(200)
  await stack.faults.set(null)
  const remaining = async () =>
    Number(/;r=(\d+)/.exec((await stack.get('/failures')).headers.get('ratelimit') ?? '')?.[1])
  await eventually(async () => expect(await remaining()).toBe(4))
})

test('An isolate learns from a late reply that a limit is exhausted.', async () => {
  await decided(stack, '/few')
  await stack.get('/few')
  await stack.faults.set('late=900')
  await stack.get('/few') // Redis refuses it, but the reply comes after the deadline
  await sleep(1500)
  const { status } = await stack.get('/few')
  await stack.faults.set(null)
  expect(status).toBe(429)
})
