/** Calls with an idempotency key over several databases. */
import { describe, expect, test } from 'vitest'
import type { StoreError } from '../../../../src/core/base/errors.ts'
import {
  allowed,
  names,
  peek,
  row,
  subjectAt,
  take,
  useSplitRedis,
} from '../../../support/split-redis.ts'
import { newSubject } from '../../../support/subjects.ts'

const { newStore } = useSplitRedis()

describe('a call with an idempotency key', () => {
  const newKey = () => ({ key: `call-${newSubject()}`, fingerprint: 'f', forMs: 60_000 })

  test('A repeated call is a replay in each database, and is not refunded twice.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    for (const cost of [1, 3]) {
      const options = { idempotency: newKey(), waitUntil }
      const list = [take(row(a), row(b, { cost }))]
      const first = await store.decide(list, options)
      await settled()
      const again = await store.decide(list, options)
      await settled()
      expect(first.replayed).toBeUndefined()
      expect(again).toEqual({ ...first, replayed: true })
    }
    expect(await peek(store, a, b)).toEqual([2, 2]) // the first passed, the second did not
    const each = { idempotency: newKey(), waitUntil }
    const lists = [[take(row(a), row(b))], [take(row(a))]]
    const first = await store.decideEach(lists, each)
    expect(await store.decideEach(lists, each)).toEqual(
      first.map((reply) => ({ ...reply, replayed: true })),
    )
    expect(await peek(store, a, b)).toEqual([0, 1])
  })

  test.each([true, false])(
    'A repeated call after the failure of one part does not charge the other parts again (fallback: %s).',
    async (fallback) => {
      const { store, refunded, waitUntil, settled } = newStore(['part-2'])
      const options = { idempotency: newKey(), fallback, waitUntil }
      const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
      const list = [take(row(a), row(b))]
      await store.decide(list, options).catch(() => {})
      await settled()
      const { store: whole } = newStore()
      const reply = await whole.decide(list, options)
      expect([allowed(reply), reply.replayed]).toEqual([[true, true], undefined])
      expect(refunded).toEqual([])
      expect(await peek(whole, a, b)).toEqual([2, 2])
    },
  )

  test('A call that one part refuses is refunded even if another part has failed.', async () => {
    const options = { idempotency: newKey(), fallback: true }
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    const { store, waitUntil, settled } = newStore(['part-3'])
    const list = [take(row(a), row(b, { cost: 4 }), row(c))]
    expect(allowed(await store.decide(list, { ...options, waitUntil }))).toEqual([
      true,
      false,
      true, // by onStoreError
    ])
    await settled()
    expect(await peek(store, a)).toEqual([3])
  })

  test('An idempotency conflict in one part is a conflict of the whole call.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const idempotency = newKey()
    await store.decide([take(row(b))], { idempotency })
    const other = {
      idempotency: { ...idempotency, fingerprint: 'g' },
      waitUntil,
      fallback: true,
    }
    const failure = await store.decide([take(row(a), row(b))], other).catch((error) => error)
    await settled()
    expect((failure as StoreError).code).toBe('idempotency-conflict')
    expect(await peek(store, a, b)).toEqual([3, 2])
  })
})
