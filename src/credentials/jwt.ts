import { decodeProtectedHeader } from 'jose/decode/protected_header'
import { JOSEError, JWSSignatureVerificationFailed } from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { type JWTVerifyOptions, jwtVerify } from 'jose/jwt/verify'
import type { Log } from '../base/log.ts'
import type { Jwt } from '../config/schema/credentials.ts'
import { oncePerRequest } from '../request/memo.ts'
import { hasAtMostBearer, readFirst, UNVERIFIED, type Unusable } from '../request/source.ts'
import type { RequestView } from '../request/view.ts'
import { createJwks } from './jwks.ts'

/** Characters of a token; longer ones are not looked at. */
const MAX_LENGTH = 16_384
const MAX_KEYS = 100
/** A token that does not name its key costs a verification for each that it may be. */
const MAX_TRIES = 8
const MIN_SECRET_BYTES = 32
const TOLERANCE_S = 5

/** The claims of a request's verified token, as an object without a prototype; `undefined` where it has no token. Never throws. */
export type Claims = (view: RequestView) => Promise<Record<string, unknown> | Unusable | undefined>

/** Whether a text may be a token in a compact form: it has three parts or more. */
export const looksLikeJwt = (text: string): boolean => text.indexOf('.') < text.lastIndexOf('.')

export interface ClaimsParts {
  /** The longest that a request waits for an issuer's first keys, in milliseconds. */
  deadlineMs: number
  /** Told of a secret that is missing or too short (`jwt`), and of keys that cannot be fetched (`jwks`); of no mistake of a client's. */
  log: Log
  /** ms since the epoch */
  clock?: () => number
}

/**
 * Reads and verifies a request's JSON Web Token (RFC 7519) by the rules of RFC 8725: the algorithm and the keys are the
 * configuration's, whatever the token's header says of either (`none`, `jku`, `jwk`, `x5u`); issuer and audience have to be the
 * configured ones; `exp` and `nbf`, where there, to hold, give or take 5 s. All policies that read claims of one request verify once.
 */
export function createClaims(
  options: Jwt,
  { deadlineMs, log, clock = Date.now }: ClaimsParts,
): Claims {
  const { algorithms, issuer, audience, from, secret, jwks } = options
  const source =
    jwks === undefined
      ? secretSource(secret, log)
      : issuerSource(jwks, algorithms, { deadlineMs, log, clock })
  const rules: JWTVerifyOptions = {
    algorithms,
    clockTolerance: TOLERANCE_S,
    ...(issuer && { issuer }),
    ...(audience && { audience }),
  }

  async function verified(token: string, view: RequestView) {
    const { alg, kid } = decodeProtectedHeader(token)
    if (!alg || !algorithms.includes(alg)) return undefined // not worth a fetch
    for (const key of await source.keys(alg, kid, view)) {
      try {
        const currentDate = new Date(clock())
        const { payload } = await jwtVerify(token, key, { ...rules, currentDate })
        return { __proto__: null, ...payload } as Record<string, unknown> // no "constructor" is a claim
      } catch (error) {
        const ofToken =
          error instanceof JOSEError && !(error instanceof JWSSignatureVerificationFailed)
        if (ofToken) return undefined // else of this key: another may do
      }
    }
    source.renew(view) // signed by none of them
    return undefined
  }

  return oncePerRequest(async (view) => {
    const token = readFirst(from, view)
    if (typeof token !== 'string') return token
    // Beside JWTs, clients may send tokens of another kind as bearer tokens.
    if (!looksLikeJwt(token) && hasAtMostBearer(from, view)) return undefined
    if (token.length > MAX_LENGTH) return UNVERIFIED
    const claims = await verified(token, view).catch(() => undefined) // not a token
    return claims ?? UNVERIFIED
  })
}

/** Where the keys come from that a token may have been signed with. */
interface VerificationKeys {
  keys(alg: string, kid: string | undefined, view: RequestView): Promise<(CryptoKey | Uint8Array)[]>
  /** Told of a token that was signed with none of them. */
  renew(view: RequestView): void
}

function secretSource(variable: string | undefined, log: Log): VerificationKeys {
  return {
    async keys(_alg, _kid, { env }) {
      // The lines do not say the variable's name: where a secret was written in its place, it would be the secret.
      const value = variable === undefined ? undefined : env[variable]
      if (typeof value !== 'string' || value === '') {
        log('jwt', 'no-secret', 'jwt.secret names a variable that is not set: no token is verified')
        return []
      }
      const bytes = new TextEncoder().encode(value)
      if (bytes.length >= MIN_SECRET_BYTES) return [bytes]
      log('jwt', 'short-secret', 'the secret of jwt has less than 32 bytes: no token is verified')
      return []
    },
    renew() {},
  }
}

/** One key for one algorithm. */
interface IssuerKey {
  alg: string
  kid: unknown
  key: CryptoKey
}

function issuerSource(
  url: string,
  algorithms: string[],
  parts: Required<ClaimsParts>,
): VerificationKeys {
  const parse = (document: unknown) => importKeys(document, algorithms)
  const jwks = createJwks({ url, parse, ...parts })
  return {
    async keys(alg, kid, view) {
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
 * The public keys of a JSON Web Key Set, each for every algorithm that it fits; `undefined` where there are none. Others are passed over
 * (RFC 7517, 5): a shared secret or a private key that an issuer gives away is no key. They are imported here, all at once,
 * because jose's own sets import at the first use and let other requests await that.
 */
async function importKeys(
  document: unknown,
  algorithms: string[],
): Promise<IssuerKey[] | undefined> {
  const { keys: jwks } = document as { keys: unknown[] }
  const imported = await Promise.all(
    jwks.slice(0, MAX_KEYS).flatMap((jwk) =>
      algorithms.map(async (alg): Promise<IssuerKey | undefined> => {
        try {
          const key = await createLocalJWKSet({ keys: [jwk as never] })({ alg })
          return { alg, kid: (jwk as { kid?: unknown }).kid, key }
        } catch {
          return undefined
        }
      }),
    ),
  )
  const usable = imported.filter((key) => key !== undefined)
  return usable.length > 0 ? usable : undefined
}
