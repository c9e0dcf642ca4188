/**
 * A short stable hash of what must not change under a stored state (ALGORITHMS: tags): 32-bit FNV-1a
 * (draft-eastlake-fnv) in base 36. Collisions between the policies of one configuration are refused
 * when it is parsed, so nothing stronger is needed, and it has to be synchronous.
 */
export function tagOf(...parts: (string | number)[]): string {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(JSON.stringify(parts))) {
    hash = Math.imul(hash ^ byte, 0x01000193)
  }
  return (hash >>> 0).toString(36)
}
