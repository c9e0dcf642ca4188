import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { JOSEError, JWSSignatureVerificationFailed } from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { type JWTVerifyOptions, jwtVerify } from 'jose/jwt/verify'
import { systemClock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { Unusable } from '../../core/base/part.ts'
import { type CompileClaim, ofPlan, smallest, withLimit } from '../../core/program/plan.ts'
import { hasAtMostBearer, looksLikeJwt, readFirst, UNVERIFIED } from '../../core/request/source.ts'
import { type Claims, oncePerRequest, type TokenView } from '../../core/request/view.ts'
import { createJwks, type JwksOptions } from './jwks.ts'
import type { JwtSettings } from './options.ts'

/** `log` also receives events `jwt` for a missing or short secret. Errors of clients are not logged. */
export type ClaimsParts = Pick<JwksOptions<unknown>, 'deadlineMs' | 'log' | 'clock'>

/** Longest accepted token, in characters. */
const MAX_LENGTH = 16_384
const MAX_KEYS = 100
/** Upper bound of the keys that are tried for a token without `kid`, because each costs a verification. */
const MAX_TRIES = 8
const MIN_SECRET_BYTES = 32
const TOLERANCE_S = 5

/**
 * Verifies the JSON Web Token (RFC 7519) of a request by the rules of RFC 8725, once for all policies. Algorithms and keys are those of the
 * configuration; the token's header cannot choose them (`none`, `jku`, `jwk`, `x5u`). `exp` and `nbf` are checked if present.
 */
export function createClaims(
  options: JwtSettings,
  { deadlineMs, log, clock = systemClock }: ClaimsParts,
): Claims {
  const { algorithms, issuer, audience, from, secret, jwks } = options
  const parts = { deadlineMs, log, clock }
  const source = jwks ? issuerSource(jwks, algorithms, parts) : secretSource(secret, log)
  const rules: JWTVerifyOptions = {
    algorithms,
    clockTolerance: TOLERANCE_S,
    ...(issuer && { issuer }),
    ...(audience && { audience }),
  }

  async function verified(token: string, view: TokenView) {
    const { alg, kid } = decodeProtectedHeader(token)
    if (!alg || !algorithms.includes(alg)) return undefined // without a fetch
    for (const key of await source.keys(alg, kid, view)) {
      try {
        const currentDate = new Date(clock())
        const { payload } = await jwtVerify(token, key, { ...rules, currentDate })
        return { __proto__: null, ...payload } as Record<string, unknown> // claims must not inherit properties
      } catch (error) {
        const isTokenInvalid =
          error instanceof JOSEError && !(error instanceof JWSSignatureVerificationFailed)
        if (isTokenInvalid) return undefined // otherwise another key may verify it
      }
    }
    source.renew(view)
    return undefined
  }

  return oncePerRequest(async (view) => {
    const token = readFirst(from, view)
    if (typeof token !== 'string') return token
    // Clients may send other kinds of bearer tokens instead of a JWT.
    if (!looksLikeJwt(token) && hasAtMostBearer(from, view)) return undefined
    if (token.length > MAX_LENGTH) return UNVERIFIED
    const claims = await verified(token, view).catch(() => undefined) // malformed
    return claims ?? UNVERIFIED
  })
}

type VerificationKeys = ReturnType<typeof issuerSource>
type VerificationKey = CryptoKey | Uint8Array

function secretSource(variable: string | undefined, log: Log): VerificationKeys {
  return {
    async keys(_alg, _kid, { env }) {
      // The messages leave out the name of the variable, because a secret may be written in its place by mistake.
      const value = variable === undefined ? undefined : env[variable]
      const bytes = new TextEncoder().encode(typeof value === 'string' ? value : '')
      if (bytes.length >= MIN_SECRET_BYTES) return [bytes]
      const [code, why] =
        bytes.length === 0
          ? ['no-secret', 'the variable named by jwt.secret is not set']
          : ['short-secret', 'the secret of jwt has less than 32 bytes']
      log('jwt', code!, `${why}: every token is unverified`)
      return []
    },
    renew() {},
  }
}

function issuerSource(url: string, algorithms: string[], parts: Required<ClaimsParts>) {
  const parse = (document: unknown) => importKeys(document, algorithms)
  const jwks = createJwks({ url, parse, ...parts })
  return {
    async keys(alg: string, kid: string | undefined, view: TokenView): Promise<VerificationKey[]> {
      const keys = (await jwks.keys(view)) ?? []
      return keys
        .filter((key) => key.alg === alg && (kid === undefined || key.kid === kid))
        .slice(0, MAX_TRIES)
        .map(({ key }) => key)
    },
    renew: jwks.renew,
  }
}

/**
 * Imports the public keys of a set for every algorithm that they fit, and ignores other entries (RFC 7517, 5). All at once: the key sets
 * of jose import at the first use, and would let other requests await that promise. Returns `undefined` without a key.
 */
async function importKeys(document: unknown, algorithms: string[]) {
  const { keys: jwks } = document as { keys: unknown[] }
  const importing = jwks.slice(0, MAX_KEYS).flatMap((jwk) =>
    algorithms.map(async (alg) => {
      const key = await createLocalJWKSet({ keys: [jwk as never] })({ alg })
      return { alg, kid: (jwk as { kid?: unknown }).kid, key }
    }),
  )
  const settled = await Promise.allSettled(importing)
  const usable = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  return usable.length > 0 ? usable : undefined
}

/** The limit of a claim, or else that of the plan. Of a token that cannot be read for certain, the smallest of the plans and `otherwise`. */
export const compileClaim: CompileClaim = (policy, { claims }, planned) => {
  const { claim } = policy
  if (!claim) return undefined
  const plans = Object.keys(policy.plan?.limits ?? {})
  const least = smallest([policy, ...plans.map((name) => ofPlan(policy, name)!)])
  return async (view) => {
    const found = await claims(view)
    if (found instanceof Unusable && found.why === 'unreadable') return least
    const value = found instanceof Unusable ? undefined : found?.[claim.claim]
    // A claim without a verified token has no value.
    const isUnits = typeof value === 'string' ? /^\d+$/.test(value) : Number.isInteger(value)
    const units = isUnits ? Number(value) : 0
    if (units >= 1) return { ...withLimit(policy, Math.min(units, claim.max)), isOwn: true }
    return planned ? planned(view) : policy
  }
}
