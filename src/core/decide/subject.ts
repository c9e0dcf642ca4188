import { hmac, hmacKey } from '../base/digest.ts'
import { canonical, type Part } from '../base/part.ts'
import { Recent } from '../base/recent.ts'
import type { Soon } from '../base/when-known.ts'

/** Converts the parts of a partition key to a subject. */
export type NameSubject = (parts: Part[]) => Soon<string>

/** Half of the upper bound of the cached subjects. */
const MAX_NAMES = 5_000
/** Longest encoded partition key that is cached, in characters. */
const MAX_LENGTH = 256

/** Names of 16 characters: 96 bits of HMAC-SHA-256 (RFC 2104), so that without the secret no address can be found by brute force. */
export function hashedSubjects(secret: string): NameSubject {
  const known = new Recent<string>(MAX_NAMES)
  let key: CryptoKey | undefined

  async function sign(text: string): Promise<string> {
    key ??= await hmacKey(secret)
    const subject = (await hmac(key, text, 12)).replaceAll('+', '-').replaceAll('/', '_')
    if (text.length <= MAX_LENGTH) known.set(text, subject)
    return subject
  }

  return (parts) => {
    const text = canonical(parts)
    return known.get(text) ?? sign(text)
  }
}
