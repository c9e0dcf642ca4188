/** The times of refunds, after another shard has refused a request. */
import { expect, test } from 'vitest'
import type { Store, StoreRequest, StoreState } from '../../../../src/core/connection/store.ts'
import { createShards } from '../../../../src/features/shards/split-store.ts'
import { names, row, subjectAt, take } from '../../../support/sharded-redis.ts'

test('A refund has the time at which its own limit was charged, if a shard reports one.', async () => {
  const refunds: StoreRequest[] = []
  const state = { remaining: 1, retryAfterMs: null, resetAfterMs: 0, nextAfterMs: 0 }
  /** A shard whose limits were charged at different times, as with leased units. */
  const shard = (allowed: boolean): Store => ({
    async decide(list) {
      refunds.push(...list.filter(({ mode }) => mode === 'refund'))
      const states = list.map(({ limits }) =>
        limits.map(
          (_, n): StoreState => ({ ...state, allowed, ...(n > 0 && { decidedAt: 2_000 }) }),
        ),
      )
      return { decidedAt: 1_000, states }
    },
    decideEach: async () => [],
  })
  const store = createShards(names.map((name) => ({ name, store: shard(name !== 'eu-3') })))
  const background: Promise<unknown>[] = []
  const charged = [row(subjectAt('eu-1')), row(subjectAt('eu-1'))]
  await store.decide([take(...charged, row(subjectAt('eu-3')))], {
    waitUntil: (promise) => void background.push(promise),
  })
  await Promise.all(background)
  expect(refunds).toEqual([
    { mode: 'refund', limits: [charged[0]], decidedAt: 1_000 },
    { mode: 'refund', limits: [charged[1]], decidedAt: 2_000 },
  ])
})
