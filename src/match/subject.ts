import type { KeyFault } from '../base/decision.ts'
import { LruCache } from '../base/lru.ts'

/** One part of a partition key as found in a request. Without a value it is missing, or has another `fault`. */
export type Part = [label: string, value: string | undefined, fault?: KeyFault]

/** Names a subject in the store from the parts of its partition key. */
export type NameSubject = (parts: Part[]) => Promise<string>

/** The parts in one text. JSON keeps apart what joining would not: ("a", "bc") and ("ab", "c"), missing and empty. */
export const canonical = (parts: Part[]): string =>
  JSON.stringify(parts.map(([label, value]) => [label, value ?? null]))

/** Subjects that an isolate remembers, and the longest text that is worth its memory. */
const MAX_NAMES = 10_000
const MAX_LENGTH = 256

/**
 * Subjects as 96 bits of HMAC-SHA-256 (RFC 2104) in 16 characters: nothing personal and nothing long reaches
 * the store, and without the secret no address can be found by trying all of them.
 */
export function hashedSubjects(secret: string): NameSubject {
  const utf8 = new TextEncoder()
  const known = new LruCache<string>({ maxSize: MAX_NAMES })
  let key: CryptoKey | undefined
  return async (parts) => {
    const text = canonical(parts)
    const before = known.get(text)
    if (before !== undefined) return before
    key ??= await crypto.subtle.importKey(
      'raw',
      utf8.encode(secret),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['sign'],
    )
    const digest = await crypto.subtle.sign('HMAC', key, utf8.encode(text))
    const subject = btoa(String.fromCharCode(...new Uint8Array(digest, 0, 12)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
    if (text.length <= MAX_LENGTH) known.set(text, subject)
    return subject
  }
}

/** Readable subjects such as `ip=203.0.113.7`, for those who ask for them; what is long or unusual is hashed all the same. */
export function plainSubjects(secret: string): NameSubject {
  const hashed = hashedSubjects(secret)
  return async (parts) => {
    const usual = parts.every(([, value]) => value !== undefined && /^[\w.:/@-]{1,64}$/.test(value))
    return usual ? parts.map(([label, value]) => `${label}=${value}`).join(',') : hashed(parts)
  }
}
