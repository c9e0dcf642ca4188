/** Calls with an idempotency key over several databases. */
import { describe, expect, test } from 'vitest'
import type { StoreError } from '../../../../src/core/base/errors.ts'
import type { StoreReply } from '../../../../src/core/connection/store.ts'
import { createShards } from '../../../../src/features/shards/split-store.ts'
import {
  allowed,
  left,
  names,
  peek,
  row,
  subjectAt,
  take,
  useShardedRedis,
} from '../../../support/sharded-redis.ts'
import { newSubject } from '../../../support/subjects.ts'

const { storeAt, newShards } = useShardedRedis()

describe('a call with an idempotency key', () => {
  const newKey = () => ({ key: `call-${newSubject()}`, fingerprint: 'f', forMs: 60_000 })

  test('A repeated call is a replay in each database, and is not refunded twice.', async () => {
    const { shards, waitUntil, settled } = newShards()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    for (const cost of [1, 3]) {
      const options = { idempotency: newKey(), waitUntil }
      const list = [take(row(a), row(b, { cost }))]
      const first = await shards.decide(list, options)
      await settled()
      const again = await shards.decide(list, options)
      await settled()
      expect(first.replayed).toBeUndefined()
      expect(again).toEqual({ ...first, replayed: true })
    }
    expect(await peek(shards, a, b)).toEqual([2, 2]) // the first passed, the second did not
    const each = { idempotency: newKey(), waitUntil }
    const lists = [[take(row(a), row(b))], [take(row(a))]]
    const first = await shards.decideEach(lists, each)
    expect(await shards.decideEach(lists, each)).toEqual(
      first.map((reply) => ({ ...reply, replayed: true })),
    )
    expect(await peek(shards, a, b)).toEqual([0, 1])
  })

  test.each([true, false])(
    'A repeated call after the failure of one shard does not charge the other shards again (fallback: %s).',
    async (fallback) => {
      const { shards, refunded, waitUntil, settled } = newShards(['eu-2'])
      const options = { idempotency: newKey(), fallback, waitUntil }
      const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
      const list = [take(row(a), row(b))]
      await shards.decide(list, options).catch(() => {})
      await settled()
      const { shards: whole } = newShards()
      const reply = await whole.decide(list, options)
      expect([allowed(reply), reply.replayed]).toEqual([[true, true], undefined])
      expect(refunded).toEqual([])
      expect(await peek(whole, a, b)).toEqual([2, 2])
    },
  )

  test('Each shard decides a call with an idempotency key by itself, even if two shards use one database.', async () => {
    const shards = createShards(names.map((name) => ({ name, store: storeAt('eu-1') })))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const list = [take(row(a), row(b, { cost: 2 }))]
    const options = { idempotency: newKey() }
    const first = await shards.decide(list, options)
    expect(first.replayed).toBeUndefined()
    expect(left(first)).toEqual([2, 1])
    expect(await shards.decide(list, options)).toEqual({ ...first, replayed: true })
    const [each] = await shards.decideEach([list], { idempotency: newKey() })
    expect(allowed(each as StoreReply)).toEqual([true, false])
    expect(await peek(shards, a, b)).toEqual([2, 1])
  })

  test('A call that one shard refuses is refunded even if another shard has failed.', async () => {
    const options = { idempotency: newKey(), fallback: true }
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    const { shards, waitUntil, settled } = newShards(['eu-3'])
    const list = [take(row(a), row(b, { cost: 4 }), row(c))]
    expect(allowed(await shards.decide(list, { ...options, waitUntil }))).toEqual([
      true,
      false,
      true, // by onStoreError
    ])
    await settled()
    expect(await peek(shards, a)).toEqual([3])
  })

  test('An idempotency conflict in one shard is a conflict of the whole call.', async () => {
    const { shards, waitUntil, settled } = newShards()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const idempotency = newKey()
    await shards.decide([take(row(b))], { idempotency })
    const other = {
      idempotency: { ...idempotency, fingerprint: 'g' },
      waitUntil,
      fallback: true,
    }
    const failure = await shards.decide([take(row(a), row(b))], other).catch((error) => error)
    await settled()
    expect((failure as StoreError).code).toBe('idempotency-conflict')
    expect(await peek(shards, a, b)).toEqual([3, 2])
  })
})
