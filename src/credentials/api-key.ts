import { sha256 } from '../base/digest.ts'
import type { Log } from '../base/log.ts'
import type { ApiKeys } from '../config/schema/credentials.ts'
import { oncePerRequest } from '../request/memo.ts'
import {
  hasAtMostBearer,
  readFirst,
  UNREADABLE,
  UNVERIFIED,
  type Unusable,
} from '../request/source.ts'
import type { RequestView } from '../request/view.ts'
import { looksLikeJwt } from './jwt.ts'

/**
 * Reads a request's API key: returns its SHA-256 in hex, so that the key itself reaches neither the store nor a log; `undefined` where
 * the request has none. A key that is not known is unverified. Never throws.
 * @param log told, as `api-keys`, of a variable that is missing, or whose entries are no digests; of no mistake of a client's
 */
export function createApiKey(
  { from, known }: ApiKeys,
  log: Log = () => {},
): (view: RequestView) => Promise<string | Unusable | undefined> {
  let list: { text: string; digests: Set<string> } | undefined

  function listed(text: unknown): Set<string> {
    if (typeof text !== 'string' || text.trim() === '') {
      log('api-keys', 'missing', 'apiKeys.known names a variable that is not set: no key is known')
      return new Set()
    }
    if (list?.text !== text) list = { text, digests: parse(text) }
    return list.digests
  }

  function parse(text: string): Set<string> {
    const entries = text
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((entry) => entry !== '')
    const digests = entries.filter((entry) => /^[\da-f]{64}$/.test(entry))
    const others = entries.length - digests.length
    if (others > 0) {
      const message = `entries of the variable that apiKeys.known names are no SHA-256 in hex: ${others}`
      log('api-keys', 'not-a-digest', message)
    }
    return new Set(digests)
  }

  return oncePerRequest(async (view) => {
    const key = readFirst(from, view)
    // A field that is sent twice reaches us as one with a comma, and some origins as two, of which they take one.
    if (typeof key !== 'string') return key
    if (/[\s,]/.test(key)) return UNREADABLE
    const digest = await sha256(key)
    if (known === undefined || listed(view.env[known]).has(digest)) return digest
    // Beside API keys, clients may send tokens of another kind as bearer tokens.
    return looksLikeJwt(key) && hasAtMostBearer(from, view) ? undefined : UNVERIFIED
  })
}
