import { fnv1a } from '../../core/base/fnv.ts'

/**
 * Assigns subjects to shards by rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
 * Each shard name has a weight for a subject, and the name with the highest weight gets the subject. The order of the names does not
 * matter. Adding or removing a name moves only the subjects of that name, 1/n of all.
 *
 * Never change this hash: every subject would move to another shard.
 * @returns a function from a subject to the index of its name
 */
export function rendezvous(names: readonly string[]): (subject: string) => number {
  const seeds = names.map((name) => mixed(fnv1a(name)))
  return (subject) => {
    const hash = fnv1a(subject)
    let [best, highest] = [0, -1]
    for (const [index, seed] of seeds.entries()) {
      const weight = mixed(mixed(hash ^ seed) + seed)
      const winsTie = weight === highest && names[index]! < names[best]!
      if (weight > highest || winsTie) [best, highest] = [index, weight]
    }
    return best
  }
}

/** The finalizer of MurmurHash3: each bit of the result depends on all bits of the input. From 0 to 2^32 - 1. */
function mixed(hash: number): number {
  let x = hash ^ (hash >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}
