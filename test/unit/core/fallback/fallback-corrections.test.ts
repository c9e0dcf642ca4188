/** Corrections of charges that the fallback has made, while the late reply of the database is pending. */

import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { Timeout } from '../../../../src/core/connection/deadline.ts'
import type { StoreResult } from '../../../../src/core/connection/store.ts'
import { conclude } from '../../../../src/core/decide/conclude.ts'
import type { PolicyLimit } from '../../../../src/core/decide/limit.ts'
import { settle } from '../../../../src/core/decide/settle.ts'
import { withFallback } from '../../../../src/core/fallback/fallback.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { concurrency } from '../../../support/features.ts'
import { storeOf } from '../../../support/store-of.ts'

test('The units of all policies that the isolate has counted are refunded at once, before the late reply.', async () => {
  const { policies } = parseConfig({
    policies: ['a', 'b'].map((name) => ({
      name,
      limit: 100,
      window: '1m',
      onStoreError: 'local' as const,
      countOnly: '4xx' as const,
    })),
  })
  const limits: PolicyLimit[] = policies.map((policy) => ({
    terms: policy,
    subject: 's',
    cost: 10,
    partitionKey: [],
  }))
  const { promise: late, resolve: end } = Promise.withResolvers<StoreResult>()
  const store = storeOf(() => Promise.reject(new Timeout(late)))
  const local = createLocalStore()
  const layer = withFallback(store, { local, onStoreError() {}, onRefund() {} })
  const requests = [{ mode: 'take' as const, limits }]
  const reply = await layer.decide(requests, { fallback: true, deadlineMs: 10 })
  const { charges } = conclude(
    { limits, requests, mode: 'take', slot: undefined, settles: true },
    reply,
  )
  const remaining = async () => {
    const peeked = await local.decide([
      { mode: 'peek', limits: limits.map((limit) => ({ ...limit, cost: 0 })) },
    ])
    return peeked.states[0]!.map((state) => state.remaining)
  }
  expect(await remaining()).toEqual([90, 90])
  const settling = settle(
    charges!,
    { store: layer },
    { status: 200, headers: new Headers() },
    () => {},
  )
  await expect.poll(remaining).toEqual([100, 100])
  end(new StoreError('timeout'))
  await settling
})

test.each([
  ['releases a slot that it may hold', 1, [['take'], ['refund']]],
  ['that costs no slot releases none', 0, [['take']]],
] as const)('A refused request %s.', async (_, cost, expected) => {
  const { policies } = parseConfig(
    {
      policies: [
        { name: 'a', limit: 1, window: '1m', algorithm: 'concurrency', onStoreError: 'deny' },
      ],
    },
    [concurrency()],
  )
  const limit = { terms: policies[0]!, subject: 's', cost, partitionKey: [], slot: 'id' }
  const sent: string[][] = []
  const store = storeOf((requests) => {
    sent.push(requests.map(({ mode }) => mode))
    return Promise.reject(new StoreError('unreachable'))
  })
  const layer = withFallback(store, {
    local: createLocalStore(),
    onStoreError() {},
    onRefund() {},
  })
  const later: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void later.push(promise)
  await layer.decide([{ mode: 'take', limits: [limit] }], { fallback: true, waitUntil })
  await Promise.all(later)
  expect(sent).toEqual(expected)
})
