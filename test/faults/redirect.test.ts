import { startFaults } from 'sluice-fault-proxy'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

test('A call to the store follows no redirect, with or without the token.', async () => {
  const elsewhere = await startFaults({ target: stack.bridge.url })
  try {
    await stack.renew({
      deadline: '5s',
      policies: [{ name: 'a', limit: 10, window: '1d', onStoreError: 'deny' }],
    })
    for (const location of ['/', `${elsewhere.url}/`] as const) {
      const before = stack.faults.counts().arrived.eval ?? 0
      await stack.faults.set(`redirect=${location}`)
      const { status } = await stack.get('/x')
      await stack.faults.set(null)
      expect([status, stack.faults.counts().arrived.eval! - before]).toEqual([503, 1])
      expect(elsewhere.counts().arrived).toEqual({})
    }
    expect((await stack.logged('store-error')).map(({ code }) => code)).toEqual(['bad-reply'])
  } finally {
    await elsewhere.close()
  }
})

testNoLeaks(() => stack)
