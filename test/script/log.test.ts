import { expect, test } from 'vitest'
import type { ModelPolicy, ModelRequest } from '../model/model.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

/** A sliding log on a new subject. */
function log(limit: number, windowMs: number) {
  const subject = newSubject()
  const terms = { tag: 't', limit, windowMs, burst: 1, align: 'first-request' } as const
  const policy: ModelPolicy = { ...terms, algorithm: 'sliding-log' }
  const key = `sluice:1:{${subject}}:log:t`
  return {
    key,
    size: () => server.send('ZCARD', key),
    async ask(mode: ModelRequest['mode'], now: number, cost = 1, decidedAt?: number) {
      const limits = [{ subject, terms: policy, cost }]
      const request: ModelRequest = { mode, limits, ...(decidedAt !== undefined && { decidedAt }) }
      return (await server.decide([request], now)).states[0]![0]!
    },
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
  await ask('refund', 5950, 1, 5000)
  expect(await ask('take', 5960)).toMatchObject({ allowed: true, remaining: 0 })
  // If the refund removed the unit of 5900, a third would pass within 1000 ms.
  expect(await ask('take', 6000)).toMatchObject({ allowed: false, retryAfterMs: 900 })
  expect(await ask('take', 6900)).toMatchObject({ allowed: true })
})
