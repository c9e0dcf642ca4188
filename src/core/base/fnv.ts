/** 32-bit FNV-1a (draft-eastlake-fnv) over UTF-16 code units, for ASCII that of the bytes. Stored tags depend on it: never change it. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** A short hash, in base 36, of the settings, all ASCII, that a stored state depends on. 32 bits suffice: the parser rejects equal tags. */
export const tagOf = (...parts: (string | number)[]): string =>
  fnv1a(JSON.stringify(parts)).toString(36)
