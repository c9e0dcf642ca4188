import { expect, test } from 'vitest'
import { keyOf, type ModelRequest } from '../model/model.ts'
import { ask, rowOf } from '../support/ask.ts'
import { callOf, useServer } from '../support/server.ts'

const server = useServer()

/** A sliding log on a new subject. */
function log(limit: number, windowMs: number) {
  const row = rowOf({ algorithm: 'sliding-log', limit, windowMs })
  const key = keyOf(row)
  return {
    key,
    size: () => server.send('ZCARD', key),
    ask: (mode: ModelRequest['mode'], now: number, cost = 1, decidedAt?: number) =>
      ask(server, mode, { ...row, cost }, now, decidedAt === undefined ? {} : { decidedAt }),
  }
}

test('A log holds ten thousand units taken in one millisecond, and refuses the next unit.', async () => {
  const { ask, size } = log(10_000, 1000)
  expect(await ask('take', 5000, 9_999)).toMatchObject({ allowed: true, remaining: 1 })
  expect(await ask('take', 5000)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await ask('take', 5000)).toMatchObject({ allowed: false, retryAfterMs: 1000 })
  expect(await size()).toBe(10_000)
  expect(await ask('refund', 5000, 10_000)).toMatchObject({ remaining: 10_000 })
  expect(await size()).toBe(0)
  expect(await ask('take', 5000, 10_000)).toMatchObject({ allowed: true, remaining: 0 })
})

test('A log of ten admits exactly ten of 72 concurrent callers by the real clock.', async () => {
  const row = rowOf({ algorithm: 'sliding-log', windowMs: 60_000 })
  const clients = await Promise.all(Array.from({ length: 72 }, () => server.connect()))
  const command = callOf([{ mode: 'take', limits: [row] }])
  const replies = await Promise.all(clients.map((client) => client.sendCommand(command)))
  expect(replies.filter((reply) => /^\S+ \+/.test(String(reply)))).toHaveLength(10)
  expect(await server.send('ZCARD', keyOf(row))).toBe(10)
})

test('Entries are numbered from one in each millisecond, so that five digits are enough.', async () => {
  const { ask, key } = log(5, 10)
  for (const now of [95, 95, 96]) await ask('take', now)
  expect(await server.send('ZRANGE', key, '0', '-1')).toEqual(['95:00001', '95:00002', '96:00001'])
})

test('No entry overwrites another if the clock moves back after a refund.', async () => {
  const { ask, size } = log(5, 10)
  for (const now of [95, 96, 100, 106]) await ask('take', now)
  await ask('refund', 106)
  // The entries of 95 and 96 have been trimmed, so the log is shorter than when its entry of 100 was added.
  await ask('take', 100)
  await ask('take', 100)
  expect(await size()).toBe(3)
  expect((await ask('peek', 100)).remaining).toBe(2)
})

test('A refund of the last live unit deletes the key, even if dead entries remain in it.', async () => {
  const { ask, key } = log(5, 10)
  await ask('take', 95)
  await ask('take', 100)
  await ask('refund', 105, 1)
  expect(await server.send('EXISTS', key)).toBe(0)
})

test('A cost of one unit more than remaining waits for the oldest live entry, not for a dead one.', async () => {
  const { ask } = log(5, 10)
  await ask('take', 90, 2)
  await ask('take', 95, 3)
  expect(await ask('peek', 101, 3)).toMatchObject({ allowed: false, remaining: 2, retryAfterMs: 4 })
})

test('A refund with a decidedAt does not change the times of later entries.', async () => {
  const { ask } = log(2, 1000)
  await ask('take', 5000)
  await ask('take', 5900)
  expect(await ask('refund', 5950, 1, 5000)).toMatchObject({ remaining: 1, resetAfterMs: 950 })
  expect(await ask('take', 5960)).toMatchObject({ allowed: true, remaining: 0 })
  // If the refund removed the unit of 5900, a third would pass within 1000 ms.
  expect(await ask('take', 6000)).toMatchObject({ allowed: false, retryAfterMs: 900 })
  expect(await ask('take', 6900)).toMatchObject({ allowed: true })
})

test('A refund removes the units of its decidedAt, and not those before them.', async () => {
  const { ask } = log(3, 1000)
  for (const time of [5000, 5100, 5900]) await ask('take', time)
  await ask('refund', 5950, 1, 5100)
  expect(await ask('take', 5960)).toMatchObject({ allowed: true, remaining: 0 })
  // The unit of 5000 is the next to end.
  expect(await ask('take', 5970)).toMatchObject({ allowed: false, retryAfterMs: 30 })
})
