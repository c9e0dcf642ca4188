import { sha256 } from '../base/digest.ts'
import type { Log } from '../base/log.ts'
import { UNREADABLE, type Unusable } from '../base/part.ts'
import type { ApiKeys } from '../config/schema/credentials.ts'
import { hasAtMostBearer, looksLikeJwt, readFirst, UNVERIFIED } from './source.ts'
import { oncePerRequest, type RequestView } from './view.ts'

/**
 * Creates a reader of API keys. It returns the SHA-256 of the key in hex, so that the key itself reaches neither the store nor a log, or
 * `undefined` without one. A key that is not known is unverified. Never throws, and logs only a missing or wrong variable.
 */
export function createApiKey(
  { from, known }: ApiKeys,
  log: Log = () => {},
): (view: RequestView) => Promise<string | Unusable | undefined> {
  let cached: { text: string; digests: Set<string> } | undefined

  function digestsIn(text: unknown): Set<string> {
    if (typeof text !== 'string' || text.trim() === '') {
      const message = 'the variable named by apiKeys.known is not set: every key is unverified'
      log('api-keys', 'missing', message)
      return new Set()
    }
    if (cached?.text === text) return cached.digests
    const entries = text.toLowerCase().match(/[^\s,]+/g) ?? []
    const digests = entries.filter((entry) => /^[\da-f]{64}$/.test(entry))
    const others = entries.length - digests.length
    if (others > 0) {
      const message = `entries of the variable named by apiKeys.known that are not a SHA-256 in hex: ${others}`
      log('api-keys', 'not-a-digest', message)
    }
    cached = { text, digests: new Set(digests) }
    return cached.digests
  }

  return oncePerRequest(async (view) => {
    const key = readFirst(from, view)
    // A header that is sent twice arrives as one value with a comma. Some origins receive two headers and use one of them.
    if (typeof key !== 'string') return key
    if (/[\s,]/.test(key)) return UNREADABLE
    const digest = await sha256(key)
    if (known === undefined || digestsIn(view.env[known]).has(digest)) return digest
    // Clients may send other kinds of bearer tokens instead of an API key.
    return looksLikeJwt(key) && hasAtMostBearer(from, view) ? undefined : UNVERIFIED
  })
}
