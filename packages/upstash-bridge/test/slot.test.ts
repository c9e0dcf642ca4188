import { expect, test } from 'vitest'
import { slotOf } from '../src/slot.ts'
import { type BridgeStack, CLUSTER, startBridgeStack } from './stack.ts'

/** The values that Redis 7.0 returns for CLUSTER KEYSLOT. */
const SLOTS: [string, number][] = [
  ['', 0],
  ['123456789', 12739],
  ['foo', 12182],
  ['{foo}', 12182],
  ['a{foo}b', 12182],
  ['foo{}{bar}', 8363],
  ['{}foo', 9500],
  ['foo{{bar}}zap', 4015],
  ['foo{bar}{zap}', 5061],
]

test.skipIf(CLUSTER)('A key has the slot that Redis computes.', () => {
  for (const [key, slot] of SLOTS) {
    expect([key, slotOf(key), slotOf(Buffer.from(key))]).toEqual([key, slot, slot])
  }
})

test.runIf(CLUSTER)('Redis computes the same slots, also for random bytes.', async () => {
  const stack: BridgeStack = await startBridgeStack()
  const random = Array.from({ length: 200 }, (_, seed) =>
    Array.from(
      { length: seed % 12 },
      (_, at) => 'ab{}é\u{1f600}'[(seed * 31 + at * at * 7) % 7],
    ).join(''),
  )
  for (const key of [...SLOTS.map(([key]) => key), ...random]) {
    expect([key, slotOf(key)]).toEqual([key, await stack.direct('CLUSTER', 'KEYSLOT', key)])
  }
  await stack.stop()
})
