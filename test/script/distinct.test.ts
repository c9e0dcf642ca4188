/** `distinct`: the number of different values in any window, on random schedules and in single cases. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ask, policyOf, start } from '../support/ask.ts'
import { property } from '../support/law.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

const WINDOW = 20
const terms = (limit: number, windowMs = WINDOW) =>
  policyOf({ algorithm: 'distinct', limit, windowMs })

/** A client of one quota. */
function client(limit: number, windowMs?: number) {
  const row = { subject: newSubject(), terms: terms(limit, windowMs) }
  const send = async (
    mode: 'take' | 'peek' | 'refund',
    at: number,
    values: string[],
    more = {},
  ) => {
    const limit = { ...row, cost: values.length, values }
    return ask(server, mode, limit, start + at, more)
  }
  return {
    take: (at: number, ...values: string[]) => send('take', at, values),
    peek: (at: number, ...values: string[]) => send('peek', at, values),
    /** @param decidedAt from `start` on */
    refund: (at: number, decidedAt: number | undefined, ...values: string[]) =>
      send('refund', at, values, decidedAt === undefined ? {} : { decidedAt: start + decidedAt }),
  }
}

const requests = fc.array(
  fc.record({
    wait: fc.constantFrom(0, 0, 1, 2, 5, 9, WINDOW - 1, WINDOW, WINDOW + 1),
    values: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), {
      minLength: 1,
      maxLength: 3,
    }),
  }),
  { minLength: 1, maxLength: 40 },
)

property(
  'No window admits more different values than the limit, no counted value is refused, and every wait is exact.',
  fc.tuple(fc.integer({ min: 1, max: 4 }), requests),
  async ([limit, sent]) => {
    const { take, peek } = client(limit)
    let now = 0
    const uses: { value: string; at: number }[] = []
    /** The values that were admitted in the window before a time. */
    const counted = (at: number) =>
      new Set(uses.filter((use) => use.at > at - WINDOW).map(({ value }) => value))
    for (const { wait, values } of sent) {
      now += wait
      const before = counted(now)
      const fits = (at: number) => new Set([...counted(at), ...values]).size <= limit
      const isKnown = values.every((value) => before.has(value))
      const { allowed, remaining, retryAfterMs } = await take(now, ...values)
      expect(allowed).toBe(isKnown || fits(now))
      if (allowed) for (const value of values) uses.push({ value, at: now })
      const after = counted(now)
      expect(after.size).toBeLessThanOrEqual(limit)
      expect(remaining).toBe(limit - after.size)
      if (allowed) continue
      if (values.length > limit) {
        expect(retryAfterMs).toBeNull()
        continue
      }
      expect(fits(now + retryAfterMs!)).toBe(true)
      expect(fits(now + retryAfterMs! - 1)).toBe(false)
      expect((await peek(now + retryAfterMs!, ...values)).allowed).toBe(true)
      expect((await peek(now + retryAfterMs! - 1, ...values)).allowed).toBe(false)
    }
  },
)

const many = Array.from({ length: 90 }, (_, n) => `value${n}`)

test('More values than one read returns are counted alike.', async () => {
  const { take, peek } = client(90, 1000)
  for (const [n, value] of many.slice(0, 80).entries()) {
    expect((await take(n, value)).remaining).toBe(89 - n)
  }
  expect(await take(100, 'value0', 'value70')).toMatchObject({ allowed: true, remaining: 10 })
  expect(await take(101, ...many.slice(80))).toMatchObject({ allowed: true, remaining: 0 })
  // value0 and value70 were used again, so value1 is the oldest, and value71 follows value69.
  expect(await take(102, 'x')).toMatchObject({ allowed: false, retryAfterMs: 1001 - 102 })
  const some = Array.from({ length: 70 }, (_, n) => `x${n}`)
  expect(await take(102, ...some)).toMatchObject({ allowed: false, retryAfterMs: 1071 - 102 })
  expect(await take(102, ...many)).toMatchObject({ allowed: true, resetAfterMs: 1000 })
  expect(await peek(1101, 'x')).toMatchObject({ allowed: false, retryAfterMs: 1 })
  expect(await take(1102, ...some)).toMatchObject({ allowed: true, remaining: 20 })
  expect(await peek(1102, 'value0')).toMatchObject({ remaining: 20, nextAfterMs: 1000 })
})

test('As many values as a limit may have are counted in one request.', async () => {
  const { take } = client(10_000, 1000)
  const all = Array.from({ length: 10_000 }, (_, n) => `v${n}`)
  expect(await take(0, ...all)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await take(1, ...all)).toMatchObject({ allowed: true, remaining: 0, nextAfterMs: 1000 })
  expect(await take(2, 'other')).toMatchObject({ allowed: false, retryAfterMs: 999 })
})

test('The wait is that for values of other requests, in whatever order the values of a request are.', async () => {
  const { take, peek } = client(3)
  for (const [at, value] of ['a', 'b', 'c'].entries()) await take(at, value)
  for (const values of [
    ['a', 'b', 'd'],
    ['b', 'a', 'd'],
    ['d', 'b', 'a'],
  ]) {
    expect(await peek(5, ...values)).toMatchObject({ allowed: false })
    expect(await take(5, ...values)).toMatchObject({ allowed: false, retryAfterMs: 17 })
  }
})

test('A value that counts needs no room, also under a smaller plan and with a floor.', async () => {
  const subject = newSubject()
  const send = (limit: number, value: string, floor = 0) =>
    ask(server, 'take', { subject, terms: terms(limit), cost: 1, values: [value], floor }, start)
  for (const value of ['a', 'b', 'c']) await send(5, value)
  expect(await send(1, 'b')).toMatchObject({ allowed: true, remaining: 0 })
  expect(await send(5, 'c', 5)).toMatchObject({ allowed: true, remaining: 0, reserved: 2 })
  expect(await send(5, 'd', 2)).toMatchObject({ allowed: false, remaining: 0 })
})

test('A refund takes back a first use, and nothing of a value that was used before or since.', async () => {
  const { take, refund } = client(3)
  await take(0, 'a')
  await take(1, 'a', 'b')
  await take(2, 'c')
  await take(3, 'c')
  expect(await refund(4, 1, 'a', 'b')).toMatchObject({ remaining: 1 })
  expect(await refund(4, 2, 'c')).toMatchObject({ remaining: 1 })
  expect(await refund(4, 3, 'c')).toMatchObject({ remaining: 1 })
  expect(await take(4, 'd')).toMatchObject({ allowed: true, remaining: 0 })
  expect(await take(5, 'b')).toMatchObject({ allowed: false, retryAfterMs: 16 })
  expect(await refund(6, 4, 'b')).toMatchObject({ remaining: 0 })
  expect(await refund(6, undefined, 'a', 'b')).toMatchObject({ remaining: 1 })
})
