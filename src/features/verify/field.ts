/** The field `Sluice-Verify`, which marks a request of `sluice verify`. */
import { hmac, hmacKey } from '../../core/base/digest.ts'

export interface Claim {
  /** Separates the counters of one check from those of clients and of other checks: 8 to 64 letters, digits, `-` or `_`. */
  nonce: string
  /** The number of the request, which its answer repeats. A cache cannot know it. */
  count: number
  /** When it was signed, ms since the epoch, by the clock of the server. */
  at: number
  /** True to send an admitted request on, as that of a client. Defaults to false: Sluice answers it with 204. */
  through?: boolean
  /** The policy to report. Defaults to none. */
  policy?: string
  /** A cost for this policy, in units. It has no effect below the cost that the policy has anyway. */
  cost?: number
}

export const FIELD = 'sluice-verify'
export const ANSWER = 'sluice-verified'

/** How long a signature is valid, and how far clocks may differ, ms. */
export const VALID_MS = 5 * 60_000

const textOf = ({ nonce, count, at, through, policy = '', cost }: Claim): string =>
  `v1;${nonce};${count};${at};${through ? 'through' : 'answer'};${policy};${cost ?? ''}`

const FORM =
  /^(v1;([\w-]{8,64});(\d{1,9});(\d{1,15});(through|answer);([\w.-]{0,64});(\d{0,15}));([\w-]{43})$/

const utf8 = new TextEncoder()

/** The keys of recent tokens. There are as many as tokens in the environment. */
const keys = new Map<string, CryptoKey>()
async function keyOf(token: string): Promise<CryptoKey> {
  const key = keys.get(token) ?? (await hmacKey(token))
  keys.set(token, key)
  return key
}

/** Signs a claim. The field has no token, because a request that a deployment does not cover reaches a server that must not learn it. */
export async function signed(claim: Claim, token: string): Promise<string> {
  const text = textOf(claim)
  const base64 = await hmac(await keyOf(token), text)
  return `${text};${base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`
}

/** Reads a field. Returns `undefined` if it is malformed, or no token has signed it. Does not check its time. */
export async function claimOf(field: string, tokens: string[]): Promise<Claim | undefined> {
  const [, text, nonce, count, at, kind, policy, cost, signature] = FORM.exec(field) ?? []
  if (text === undefined) return undefined
  const base64 = signature!.replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
  for (const token of tokens) {
    if (!(await crypto.subtle.verify('HMAC', await keyOf(token), bytes, utf8.encode(text))))
      continue
    return {
      ...{ nonce: nonce!, count: Number(count), at: Number(at) },
      ...(kind === 'through' && { through: true }),
      ...(policy && { policy }),
      ...(policy && cost && { cost: Number(cost) }),
    }
  }
  return undefined
}

export const isCurrent = ({ at }: Claim, now: number): boolean => Math.abs(now - at) <= VALID_MS
