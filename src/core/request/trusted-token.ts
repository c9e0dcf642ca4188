import { sha256 } from '../base/digest.ts'
import { oncePerRequest, type RequestView } from './view.ts'

/** Shorter tokens could be guessed. */
const MIN_LENGTH = 16

/** The tokens in a variable, several during a rotation, separated by spaces or commas. Those of less than 16 characters are ignored. */
export const tokensIn = (configured: unknown): string[] =>
  typeof configured === 'string'
    ? configured.split(/[\s,]+/).filter((token) => token.length >= MIN_LENGTH)
    : []

/** Reports whether a token is one of those in a variable, in constant time. Never throws. */
export async function holds(token: string | null, configured: unknown): Promise<boolean> {
  const tokens = tokensIn(configured)
  if (!token || tokens.length === 0) return false
  const [digest, ...digests] = await Promise.all([token, ...tokens].map(sha256))
  let found = false
  for (const other of digests) found = equal(digest!, other) || found // no early exit
  return found
}

/** Reports whether a trusted proxy sent the request, with a token of `SLUICE_PROXY_TOKEN` in `Sluice-Token`. Checked once per request. Never throws. */
export const isTrustedProxy = /* @__PURE__ */ oncePerRequest(({ request, env }: RequestView) =>
  holds(request.headers.get('sluice-token'), env.SLUICE_PROXY_TOKEN),
)

/** Compares digests in constant time. Timing could at most reveal a digest, not the token. */
function equal(a: string, b: string): boolean {
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
