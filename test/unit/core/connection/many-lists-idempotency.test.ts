/** decideEach: calls with an idempotency key. */
import { describe, expect, test } from 'vitest'
import type { Idempotency } from '../../../../src/core/connection/store.ts'
import { commandsBetween } from '../../../support/commands.ts'
import { ask, hundred, newSubjects, outcomes, two, useBridge } from '../../../support/many-lists.ts'
import { newSubject } from '../../../support/subjects.ts'

const { running, newStore } = useBridge()

describe('many lists with an idempotency key', () => {
  const idempotencyOf = (changed: Partial<Idempotency> = {}): Idempotency => ({
    key: newSubject(),
    fingerprint: 'f',
    forMs: 60_000,
    ...changed,
  })
  const keysOf = (key: string) => running.client.keys(`sluice:1:{${key}*`)

  test('Each script call of decideEach has its own idempotency key, and its repeated lists are marked as replayed.', async () => {
    const store = newStore()
    const [lists, idempotency] = [hundred(), idempotencyOf()]
    const first = await store.decideEach(lists, { idempotency })
    expect(outcomes(first)).toEqual(Array(100).fill([99, 99, 99]))
    const names = [idempotency.key, `${idempotency.key}.2`, `${idempotency.key}.3`].map(
      (key) => `sluice:1:{${key}}`,
    )
    expect((await keysOf(idempotency.key)).sort()).toEqual(names.sort())
    let repeated: unknown
    const commands = await commandsBetween(running.redis.url, async () => {
      repeated = await store.decideEach(lists, { idempotency })
    })
    expect(repeated).toEqual(first.map((reply) => ({ ...reply, replayed: true })))
    expect(commands).toEqual({ evalsha: 3, time: 3, mget: 3 })
  })

  test('A call with the maximum of 128 keys has room for its idempotency key.', async () => {
    const lists = newSubjects(128).map((subject) => [ask('take', [subject])])
    const idempotency = idempotencyOf()
    const replies = await newStore().decideEach(lists, { idempotency })
    expect(outcomes(replies)).toEqual(Array(128).fill([99]))
    expect(await keysOf(idempotency.key)).toHaveLength(1)
  })

  test('Lists that are sent again one by one are idempotent.', async () => {
    const store = newStore()
    const [lists, idempotency] = [hundred(), idempotencyOf()]
    for (const index of [10, 50, 99]) lists[index] = [ask('take', ['x'], { cost: -1 })]
    const first = await store.decideEach(lists, { idempotency })
    const repeated = await store.decideEach(lists, { idempotency })
    expect(outcomes(repeated)).toEqual(outcomes(first))
    expect(outcomes(repeated)[0]).toEqual([99, 99, 99])
    expect(repeated.filter((reply) => 'replayed' in reply)).toHaveLength(97)
  })

  test('Another call with the same idempotency key is a conflict, in decide and in decideEach.', async () => {
    const store = newStore()
    const [lists, idempotency] = [two(), idempotencyOf()]
    await store.decideEach(lists, { idempotency })
    const other = { ...idempotency, fingerprint: 'g' }
    expect(outcomes(await store.decideEach(lists, { idempotency: other }))).toEqual([
      'idempotency-conflict',
      'idempotency-conflict',
    ])
    await expect(store.decide(lists[0]!, { idempotency: other })).rejects.toThrow(
      /^idempotency-conflict: /,
    )
    const peeks = lists.map(([request]) => [{ ...request!, mode: 'peek' as const }])
    expect(outcomes(await store.decideEach(peeks, {}))).toEqual([
      Array(100).fill(99),
      Array(100).fill(99),
    ])
  })
})
