/** Where keys are in the old and in the new layout of shards. */

import { recordOf } from '../../store/upstash/script.ts'
import { rendezvous } from '../rendezvous.ts'

/** The places of one subject: names of shards. */
export interface MovePlaces {
  from: string
  to: string
}

/** The names of the old and of the new shards. */
export interface Layouts {
  from: readonly string[]
  to: readonly string[]
}

/** Returns a function from a subject to its places. */
export function placesOf({ from, to }: Layouts) {
  const [oldShardOf, newShardOf] = [rendezvous(from), rendezvous(to)]
  return (subject: string): MovePlaces => ({
    from: from[oldShardOf(subject)]!,
    to: to[newShardOf(subject)]!,
  })
}

/** True if a key with these places moves away from a shard. A key whose old place is another one is a leftover of an earlier layout. */
export const leaves = (shard: string, { from, to }: MovePlaces): boolean =>
  from === shard && to !== shard

/** The subject of a key: its hash tag. */
export const subjectOf = (key: string): string =>
  key.slice(key.indexOf('{') + 1, key.lastIndexOf('}'))

/** The name of a move, in Redis. The order of shards has no meaning. */
export const nameOf = ({ from, to }: Layouts): string =>
  [from, to].map((names) => [...names].sort().join()).join('>')

/** The key with the name of the move that has begun at a shard. No client has this subject. */
export const moveKey = (namespace?: string): string => recordOf('move', namespace)

/** The key that shows that a value has arrived. */
export const receiptOf = (key: string): string => `${key}:moved`
