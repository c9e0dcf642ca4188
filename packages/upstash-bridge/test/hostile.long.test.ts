import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack()
})
afterAll(() => stack.stop())

test('A body of 10 MB of open brackets is refused with 400.', async () => {
  for (const path of ['/', '/pipeline', '/multi-exec']) {
    const body = '['.repeat(10_000_000)
    expect((await stack.http(path, { method: 'POST', body })).status).toBe(400)
  }
}, 120_000)
