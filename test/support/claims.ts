import { Unusable } from '../../src/core/base/part.ts'
import type { Claims, RequestView } from '../../src/core/request/view.ts'
import { createClaims } from '../../src/features/jwt/claims.ts'
import type { JwtOptions } from '../../src/features/jwt/index.ts'
import { parseOptions } from '../../src/features/jwt/options.ts'
import { bearing, json, sign, signer, startIssuer } from './issuer.ts'

export const SECRET = 'a secret of at least 32 bytes, or so it says'
export const secretKey = new TextEncoder().encode(SECRET)
export const NOW = 1_789_000_000

/** The clock that verifies claims, in ms, and the logged lines. A test file calls `beforeEach(reset)`. */
export const clock = { now: 0 }
export const lines: string[] = []
export function reset() {
  clock.now = NOW * 1000
  lines.length = 0
}

/** Reads claims. Returns `undefined` for a token that does not verify, as for a missing token. */
export const verified = (claims: Claims) => async (view: RequestView) => {
  const found = await claims(view)
  return found instanceof Unusable ? undefined : found
}

export const create = (options: JwtOptions, deadlineMs = 10_000) =>
  verified(
    createClaims(parseOptions(options), {
      deadlineMs,
      log: (event, code, message) => void lines.push(`${event} ${code}: ${message}`),
      clock: () => clock.now,
    }),
  )

/** The claims of a token, as a plain object. */
export async function read(
  claims: ReturnType<typeof create>,
  token: string,
  env: Record<string, unknown> = { JWT: SECRET },
) {
  const found = await claims(bearing(token, env))
  return found && { ...found }
}

export const hs = (claims: object, header: object = {}, key = secretKey) =>
  sign(claims, { alg: 'HS256', ...header }, key)

/** Starts an issuer that publishes four keys: `first`, `second`, `ec` and `ed`. `reset` restores this key set. */
export async function startKeys() {
  const issuer = await startIssuer()
  const [first, second, ec, ed, kidless, unkept] = await Promise.all([
    signer('RS256', 'first'),
    signer('RS256', 'second'),
    signer('ES256', 'ec'),
    signer('EdDSA', 'ed'),
    signer('RS256', undefined),
    signer('RS256', 'first'),
  ])
  return {
    issuer,
    first,
    second,
    ec,
    ed,
    kidless,
    unkept,
    reset() {
      issuer.fetches = 0
      issuer.answer = set(first.jwk, second.jwk, ec.jwk, ed.jwk)
    },
    claimsOf: (options: Partial<JwtOptions> = {}) => create({ jwks: issuer.url, ...options }),
  }
}

/** A key set with these keys. */
export const set = (...keys: unknown[]) => json({ keys })

export type Keys = Awaited<ReturnType<typeof startKeys>>
