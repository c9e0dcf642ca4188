import { fnv1a } from '../../base/fnv.ts'

/**
 * Rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998). Each name has a weight for a
 * subject, and the heaviest gets the subject. The order of the names does not matter, and adding or removing a name moves only the
 * subjects of that name, 1/n of all.
 *
 * Never change this hash: every subject would move to another shard.
 * @returns the index of the name that gets a subject
 */
export function rendezvous(names: string[]): (subject: string) => number {
  const seeds = names.map((name) => mixed(fnv1a(name)))
  return (subject) => {
    const hash = fnv1a(subject)
    let [best, heaviest] = [0, -1]
    for (const [index, seed] of seeds.entries()) {
      const weight = mixed(mixed(hash ^ seed) + seed)
      const ties = weight === heaviest && names[index]! < names[best]!
      if (weight > heaviest || ties) [best, heaviest] = [index, weight]
    }
    return best
  }
}

/** Each bit of it depends on all bits (the finalizer of MurmurHash3). From 0 to 2^32 - 1. */
function mixed(hash: number): number {
  let x = hash ^ (hash >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}
