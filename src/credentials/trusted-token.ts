import { sha256 } from '../base/digest.ts'
import { oncePerRequest } from '../request/memo.ts'
import type { RequestView } from '../request/view.ts'

/** Shorter ones could be guessed, and are ignored. */
const MIN_LENGTH = 16

/**
 * The tokens in a variable, which holds one or, while they are being changed, several, between spaces or commas. Those of less than
 * 16 characters are none.
 */
export const tokensIn = (configured: unknown): string[] =>
  typeof configured === 'string'
    ? configured.split(/[\s,]+/).filter((token) => token.length >= MIN_LENGTH)
    : []

/** Whether what somebody says is one of the tokens in a variable. Takes as long whichever it is, and however much of it is right. Never throws. */
export async function holds(said: string | null, configured: unknown): Promise<boolean> {
  const tokens = tokensIn(configured)
  if (!said || tokens.length === 0) return false
  const [digest, ...digests] = await Promise.all([said, ...tokens].map(sha256))
  let found = false
  for (const other of digests) found = equal(digest!, other) || found // each is compared, whichever it was
  return found
}

/** Whether a trusted proxy sent the request: its `Sluice-Token` is one of those in `SLUICE_PROXY_TOKEN`. Never throws. Checked once for each request. */
export const isTrustedProxy = oncePerRequest(({ request, env }: RequestView) =>
  holds(request.headers.get('sluice-token'), env.SLUICE_PROXY_TOKEN),
)

/** Takes as long wherever two digests differ; and what differs is not the token. */
function equal(a: string, b: string): boolean {
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
