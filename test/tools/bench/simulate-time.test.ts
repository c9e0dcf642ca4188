import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startVirtualTime, type VirtualTime } from '../../../tools/bench/simulate/time.ts'

let time: VirtualTime
beforeEach(() => {
  time = startVirtualTime(1000)
})
afterEach(() => time.end())

test('Events run in the order of their times, and events of the same time in the order of scheduling.', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 60 }), async (delays) => {
      const start = time.now()
      const happened: [number, number][] = []
      for (const [index, delay] of delays.entries()) {
        time.at(start + delay, () => happened.push([delay, index]))
      }
      await time.run(start + 51)
      expect(happened).toEqual(
        [...delays.entries()]
          .map(([i, d]) => [d, i])
          .sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]!),
      )
    }),
  )
})

test('Date.now and timers use the virtual time, and a cleared timer does not fire.', async () => {
  const events: string[] = []
  setTimeout(() => events.push(`a ${Date.now()}`), 30)
  clearTimeout(setTimeout(() => events.push('cleared'), 10))
  void time.wait(20.5).then(() => events.push(`b ${Date.now()} ${time.now()}`))
  await time.run(1029)
  expect(events).toEqual(['b 1020 1020.5'])
  await time.run(2000)
  expect(events).toEqual(['b 1020 1020.5', 'a 1030'])
  expect(Date.now()).toBe(2000)
})

test('Code that waits continues before later events.', async () => {
  const events: number[] = []
  const twice = async () => {
    await time.wait(5)
    events.push(time.now())
    await time.wait(5)
    events.push(time.now())
  }
  time.at(1010, () => void twice())
  time.at(1017, () => events.push(time.now()))
  await time.run(1100)
  expect(events).toEqual([1015, 1017, 1020])
})

test('Waiting for real I/O takes no virtual time.', async () => {
  let at = 0
  const outside = new Promise<void>((resolve) => {
    process.nextTick(() => setImmediate(resolve))
  })
  time.at(1010, async () => {
    await outside
    at = time.now()
  })
  time.at(1020, () => {
    expect(at).toBe(1010)
  })
  await time.run(1100)
  expect(at).toBe(1010)
})
