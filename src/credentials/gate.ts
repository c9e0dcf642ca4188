import type { Seen } from '../seen.ts'
import { sha256 } from './digest.ts'
import { oncePerRequest } from './once.ts'

/** Shorter ones could be guessed, and are ignored. */
const MIN_LENGTH = 16

/**
 * Whether a request comes from the gate: from somebody whose `Sluice-Token` is one of the tokens in the variable
 * `SLUICE_GATE_TOKEN`, which holds one or, while they are being changed, several, between spaces or commas. Tokens of less than 16
 * characters are ignored; without any nobody is the gate. Never throws. A request is asked about once.
 */
export const isGate = oncePerRequest(ask)

async function ask({ request, env }: Seen): Promise<boolean> {
  const said = request.headers.get('sluice-token')
  const configured = env.SLUICE_GATE_TOKEN
  if (!said || typeof configured !== 'string') return false
  const tokens = configured.split(/[\s,]+/).filter((token) => token.length >= MIN_LENGTH)
  const [digest, ...digests] = await Promise.all([said, ...tokens].map(sha256))
  let found = false
  for (const other of digests) found = equal(digest!, other) || found // each is compared, whichever it was
  return found
}

/** Takes as long wherever two digests differ; and what differs is not the token. */
function equal(a: string, b: string): boolean {
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
