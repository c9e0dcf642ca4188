/** The times of refunds, after another part has refused a request. */
import { expect, test } from 'vitest'
import type { StoreRequest, StoreState } from '../../../../src/core/connection/store.ts'
import { names, row, subjectAt, take } from '../../../support/split-redis.ts'
import { splitOver } from '../../../support/split-store.ts'
import { storeOf } from '../../../support/store-of.ts'

test('A refund has the time at which its own limit was charged, if a part reports one.', async () => {
  const refunds: StoreRequest[] = []
  const state = { remaining: 1, retryAfterMs: null, resetAfterMs: 0, nextAfterMs: 0 }
  /** A part whose limits were charged at different times, as with leased units. */
  const part = (allowed: boolean) =>
    storeOf(async (list) => {
      refunds.push(...list.filter(({ mode }) => mode === 'refund'))
      const states = list.map(({ limits }) =>
        limits.map(
          (_, n): StoreState => ({ ...state, allowed, ...(n > 0 && { decidedAt: 2_000 }) }),
        ),
      )
      return { decidedAt: 1_000, states }
    })
  const store = splitOver(names.map((name) => part(name !== 'part-3')))
  const background: Promise<unknown>[] = []
  const charged = [row(subjectAt('part-1')), row(subjectAt('part-1'))]
  await store.decide([take(...charged, row(subjectAt('part-3')))], {
    waitUntil: (promise) => void background.push(promise),
  })
  await Promise.all(background)
  expect(refunds).toEqual([
    { mode: 'refund', limits: [charged[0]], decidedAt: 1_000 },
    { mode: 'refund', limits: [charged[1]], decidedAt: 2_000 },
  ])
})
