/**
 * 32-bit FNV-1a (draft-eastlake-fnv) over UTF-16 code units. For ASCII this equals the hash of the bytes. Never change this hash:
 * stored tags would no longer match.
 */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * A short hash, in base 36, of the settings that a stored state depends on. A change of these settings starts a new state. All parts
 * are ASCII. 32 bits are enough, because the parser rejects a configuration with two equal tags.
 */
export const tagOf = (...parts: (string | number)[]): string =>
  fnv1a(JSON.stringify(parts)).toString(36)
