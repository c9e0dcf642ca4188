import { describe, expect, test } from 'vitest'
import type { Limit, StoreRequest, StoreState } from '../../../../src/core/connection/store.ts'
import { admits, chargedIn, split, statesBy } from '../../../../src/stores/split/split.ts'

const limitOf = (subject: string, cost = 1): Limit => ({
  subject,
  terms: {
    tag: 't',
    algorithm: 'fixed-window',
    limit: 10,
    windowMs: 60_000,
    burst: 10,
    align: 'clock',
    localShare: 1,
  },
  cost,
})
const [a0, b0, a1] = [limitOf('a0'), limitOf('b0'), limitOf('a1')]
/** A subject's last digit is its part. */
const partOf = (subject: string) => Number(subject.at(-1))
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits })
const follow = (limit: Limit): StoreRequest => ({ mode: 'follow', limits: [limit] })
const peek = (...limits: Limit[]): StoreRequest => ({ mode: 'peek', limits })

const state = (allowed = true): StoreState => ({
  allowed,
  remaining: 5,
  retryAfterMs: 0,
  resetAfterMs: 0,
  nextAfterMs: 0,
})

describe('the list for each part', () => {
  test('A list with all limits on one part goes there unchanged.', () => {
    const list = [take(a0, b0), follow(a0)]
    const all = { parts: [0], partLists: [list], groups: undefined }
    expect(split(list, partOf)).toEqual(all)
  })

  test('A take on several parts is sent as a peek and a take to each of them.', () => {
    const { partLists, groups } = split([take(a0, a1, b0)], partOf)
    expect(partLists).toEqual([
      [peek(a0, b0), take(a0, b0)],
      [peek(a1), take(a1)],
    ])
    expect(groups!.map(({ isSplitTake }) => isSplitTake)).toEqual([true])
  })

  test('Requests on one part each go there unchanged.', () => {
    const { partLists, groups } = split([take(a0, b0), take(a1)], partOf)
    expect(partLists).toEqual([[take(a0, b0)], [take(a1)]])
    expect(groups!.map(({ isSplitTake }) => isSplitTake)).toEqual([false, false])
  })

  test('A follow on the part of its take stays a follow, and one on another part becomes a take.', () => {
    expect(split([take(a0), follow(b0), follow(a1)], partOf).partLists).toEqual([
      [peek(a0, b0), take(a0), follow(b0)],
      [peek(a1), take(a1)],
    ])
  })

  test('A follow of a peek becomes a peek on another part.', () => {
    expect(split([peek(a0), follow(a1)], partOf).partLists).toEqual([[peek(a0)], [peek(a1)]])
  })

  test('A follow without a request before it becomes a take.', () => {
    expect(split([follow(a0), follow(a1)], partOf).partLists).toEqual([[take(a0)], [take(a1)]])
  })
})

test('The reply of a part is mapped to its limits, and shows whether it admits the request and which limits it has charged.', () => {
  const free = limitOf('c0', 0)
  const { groups } = split([take(a0, free, a1), follow(b0)], partOf)
  const fragment = groups![0]!.fragments[0]!
  const reply = (lead: boolean, other: boolean) => ({
    decidedAt: 0,
    states: [[state(), state(), state()], [state(), state(lead)], [state(other)]],
  })
  const cells = [...statesBy(fragment.requests, reply(true, false))]
  expect(
    cells.map(([{ limit, request, index }, { allowed }]) => [limit, request, index, allowed]),
  ).toEqual([
    [a0, 0, 0, true],
    [free, 0, 1, true],
    [b0, 1, 0, false],
  ])
  expect([admits(fragment, reply(true, false)), admits(fragment, reply(false, true))]).toEqual([
    true,
    false,
  ])
  expect(chargedIn(fragment, reply(true, false))).toEqual([a0])
  expect(chargedIn(fragment, reply(true, true))).toEqual([a0, b0])
})
