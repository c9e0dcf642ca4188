/** Charges of calls whose reply comes after the deadline, or not at all. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { decided, type FaultStack, startFaultStack } from '../support/fault-stack.ts'

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

test.each(['late=2500', 'lose'] as const)(
  'A slot that a request refused by the fallback may have taken is released (%s).',
  async (fault) => {
    const name = `slots-${fault.slice(0, 4)}`
    await stack.renew({
      deadline: '500ms',
      policies: [{ name, algorithm: 'concurrency', limit: 2, window: '10m', onStoreError: 'deny' }],
    })
    await decided(stack, '/x')
    await stack.faults.set(fault, { next: 2 })
    const refused = await Promise.all([stack.get('/x'), stack.get('/x')])
    expect(refused.map(({ status }) => status)).toEqual([503, 503])
    await stack.faults.set(null)
    await vi.waitFor(
      async () => {
        const held = await Promise.all([stack.get('/slow/300'), stack.get('/slow/300')])
        expect(held.map(({ status }) => status)).toEqual([200, 200])
      },
      { timeout: 8000, interval: 200 },
    )
  },
)

test('A slot that a request admitted by the fallback may have taken is released when its response ends.', async () => {
  await stack.renew({
    deadline: '300ms',
    policies: [{ name: 'passing', algorithm: 'concurrency', limit: 1, window: '10m' }],
  })
  await decided(stack, '/x')
  await stack.faults.set('late=2500', { next: 1 })
  expect((await stack.get('/x')).status).toBe(200) // onStoreError of concurrency defaults to allow
  await stack.faults.set(null)
  await vi.waitFor(async () => expect((await stack.get('/x')).status).toBe(200), {
    timeout: 8000,
    interval: 200,
  })
})

test('A unit that does not count is refunded, also if the reply came late.', async () => {
  await stack.renew({
    deadline: '300ms',
    policies: [{ name: 'failures', limit: 5, window: '1d', countOnly: '4xx' }],
  })
  await decided(stack, '/x')
  await stack.faults.set('late=2500', { next: 1 })
  expect((await stack.get('/x')).status).toBe(200)
  await stack.faults.set(null)
  const remaining = async () =>
    Number(/;r=(\d+)/.exec((await stack.get('/x')).headers.get('ratelimit') ?? '')?.[1])
  await vi.waitFor(async () => expect(await remaining()).toBe(4), { timeout: 8000, interval: 200 })
})

test('An isolate learns from a late reply that a limit is exhausted.', async () => {
  await stack.renew({ deadline: '400ms', policies: [{ name: 'few', limit: 2, window: '1d' }] })
  await decided(stack, '/x')
  await stack.get('/x')
  await stack.faults.set('late=900')
  await stack.get('/x') // Redis refuses it, but the reply comes after the deadline
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const { status } = await stack.get('/x')
  await stack.faults.set(null)
  expect(status).toBe(429)
})
