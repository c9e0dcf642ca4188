import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type { Limit, StoreRequest, StoreResult } from '../../../../src/core/connection/store.ts'
import { divided, type Pack, pack, unpack } from '../../../../src/core/connection/upstash/pack.ts'
import { keysOf } from '../../../../src/core/connection/upstash/script.ts'

const terms: Limit['terms'] = {
  tag: 't',
  algorithm: 'token-bucket',
  limit: 1,
  windowMs: 1,
  burst: 1,
  align: 'clock',
  localShare: 1,
}
const request = (
  subjects: number[],
  mode: Exclude<StoreRequest['mode'], 'override'> = 'take',
  change: Partial<Limit> = {},
): StoreRequest => ({
  mode,
  limits: subjects.map((subject) => ({ subject: `${subject}`, terms, cost: 1, ...change })),
})
const withTwoKeys: Partial<Limit> = {
  terms: { ...terms, algorithm: 'sliding-log' },
  penalty: { tag: 'p', after: 1, withinMs: 1, banMs: 1, maxMs: 1 },
}
const idempotency = { key: 'k', fingerprint: 'f', forMs: 1 }

/** Many subjects reach the bound of keys first, and few subjects the bound of requests. */
const listsOf = (mostSubject: number, size: fc.SizeForArbitrary) => {
  const subjects = fc.array(fc.nat(mostSubject), { minLength: 1, maxLength: 40 })
  return fc.array(fc.array(subjects, { minLength: 1, maxLength: 40, size }), { maxLength: 40 })
}
const lists = fc.oneof(listsOf(400, 'small'), listsOf(3, 'max'))

test('Lists go in as few calls as possible, each with at most 128 keys and 128 requests.', () => {
  fc.assert(
    fc.property(lists, fc.boolean(), fc.boolean(), (numbers, isIdempotent, haveTwoKeys) => {
      const change = haveTwoKeys ? withTwoKeys : {}
      const all = numbers.map((list) => list.map((some) => request(some, 'take', change)))
      const packs = pack(all, isIdempotent ? idempotency : undefined)
      const listsOf = ({ requests, lengths = [requests.length] }: Pack) => {
        const rest = [...requests]
        return lengths.map((length) => rest.splice(0, length))
      }
      expect(packs.flatMap(listsOf)).toEqual(all)
      const fits = (some: StoreRequest[][]) =>
        keysOf(some.flat()).length <= 128 && some.flat().length <= 128
      packs.map(listsOf).forEach((lists, index, each) => {
        expect(lists.length).toBeGreaterThan(0)
        expect(lists.length === 1 || fits(lists)).toBe(true)
        const next = each[index + 1]?.[0]
        if (next) expect(fits([...lists, next])).toBe(false)
      })
      const names = packs.map(({ idempotency }) => idempotency?.key)
      const wanted = packs.map((_, index) => (index === 0 ? 'k' : `k.${index + 1}`))
      expect(names).toEqual(isIdempotent ? wanted : packs.map(() => undefined))
    }),
    { numRuns: 300 },
  )
})

test('Each list of an unpacked call has its own idempotency key.', () => {
  const [only] = pack([[request([1])], [request([2])]], idempotency)
  expect(unpack(only!)).toEqual([
    { requests: [request([1])], idempotency: { ...idempotency, key: 'k-1' } },
    { requests: [request([2])], idempotency: { ...idempotency, key: 'k-2' } },
  ])
})

test('The leading follows of a list become takes, so that they do not follow the list before.', () => {
  const modes = (...list: Exclude<StoreRequest['mode'], 'override'>[]) => {
    const [packed] = pack([[request([1])], list.map((mode) => request([2], mode))])
    return packed!.requests.slice(1).map(({ mode }) => mode)
  }
  expect(modes('follow', 'follow', 'take', 'follow')).toEqual(['take', 'take', 'take', 'follow'])
  expect(modes('peek', 'follow')).toEqual(['peek', 'follow'])
  expect(modes('follow')).toEqual(['take'])
})

test('An answer is divided into one reply for each list, and an error becomes the reply of each list.', () => {
  const [two] = pack([[request([1])], [request([1]), request([2])]])
  const repliesTo = (reply: StoreResult) => divided(two!, reply)
  const times = { retryAfterMs: 0, resetAfterMs: 1, nextAfterMs: 1 }
  const states = [1, 2, 3].map((remaining) => [{ allowed: true, remaining, ...times }])
  expect(repliesTo({ decidedAt: 9, states, replayed: true })).toEqual([
    { decidedAt: 9, states: states.slice(0, 1), replayed: true },
    { decidedAt: 9, states: states.slice(1), replayed: true },
  ])
  const failure = new StoreError('timeout')
  expect(repliesTo(failure)).toEqual([failure, failure])
})
