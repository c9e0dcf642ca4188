/** The bound after a change of the list of shards. */
import { expect, test } from 'vitest'
import type { StoreReply } from '../../../../src/core/connection/store.ts'
import { rendezvous } from '../../../../src/features/shards/rendezvous.ts'
import { createShards } from '../../../../src/features/shards/split-store.ts'
import {
  allowed,
  names,
  policy,
  row,
  take,
  useShardedRedis,
} from '../../../support/sharded-redis.ts'
import { newSubject } from '../../../support/subjects.ts'

const { storeAt } = useShardedRedis()
const deploymentOf = (list: string[]) => {
  const shardOf = rendezvous(list)
  const store = createShards(list.map((name) => ({ name, store: storeAt(name) })))
  return { store, placeOf: (subject: string) => list[shardOf(subject)]! }
}

test.each([
  ['added', names.slice(0, 2), names],
  ['removed', names, names.slice(0, 2)],
])(
  'After a shard is %s, a client whose shard changes gets one limit more, and other clients get none.',
  async (_, before, after) => {
    const deployments = [deploymentOf(before), deploymentOf(after)]
    const subjects = Array.from({ length: 60 }, newSubject)
    const admitted = new Map(subjects.map((subject) => [subject, 0]))
    // Isolates of both deployments run side by side, and get more requests than both limits admit.
    for (let round = 0; round < 2 * policy.limit; round++) {
      for (const { store } of deployments) {
        const replies = await store.decideEach(subjects.map((subject) => [take(row(subject))]))
        subjects.forEach((subject, index) => {
          const [isAdmitted] = allowed(replies[index] as StoreReply)
          if (isAdmitted) admitted.set(subject, admitted.get(subject)! + 1)
        })
      }
    }
    const bounds = subjects.map((subject) => {
      const places = new Set(deployments.map(({ placeOf }) => placeOf(subject)))
      return places.size * policy.limit
    })
    expect(new Set(bounds)).toEqual(new Set([policy.limit, 2 * policy.limit]))
    expect([...admitted.values()]).toEqual(bounds)
  },
)
