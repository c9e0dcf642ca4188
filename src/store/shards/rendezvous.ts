/**
 * Whose place is where: rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998). Each
 * name draws a weight for a subject, and the heaviest has it. So the order of the names does not matter, and where one comes or goes
 * only what it gets or had moves, 1/n of all.
 *
 * What it says is for ever: another hash would move everybody.
 * @returns the index of the name that has a subject
 */
export function rendezvous(names: string[]): (subject: string) => number {
  const seeds = names.map((name) => mixed(hashOf(name)))
  return (subject) => {
    const hash = hashOf(subject)
    let [best, heaviest] = [0, -1]
    for (const [index, seed] of seeds.entries()) {
      const weight = mixed(mixed(hash ^ seed) + seed)
      const ties = weight === heaviest && names[index]! < names[best]!
      if (weight > heaviest || ties) [best, heaviest] = [index, weight]
    }
    return best
  }
}

/** 32-bit FNV-1a (draft-eastlake-fnv) over UTF-16 units: subjects are ASCII. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** Each bit of it depends on all bits (the finalizer of MurmurHash3). From 0 to 2^32 - 1. */
function mixed(hash: number): number {
  let x = hash ^ (hash >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}
