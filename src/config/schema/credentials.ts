import * as v from 'valibot'
import { type Input, list, type Named, named, object, oneOf, pattern } from './shapes.ts'

/** Where a credential is read from, the first that is present: `bearer` is `Authorization: Bearer …`. */
export type CredentialSource =
  | 'bearer'
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`

/** Where a credential is read from, parsed. */
export interface Source {
  source: 'bearer' | 'header' | 'cookie' | 'query'
  name: string
}

const from = list(
  v.pipe(
    pattern<CredentialSource>(
      '"bearer", "header:<name>", "cookie:<name>" or "query:<name>"',
      /^(bearer|(header|cookie):[\w!#$%&'*+.^`|~-]+|query:\S+)$/,
    ),
    v.transform((text): Source => {
      const [, source, name] = /^(\w+):?(.*)$/.exec(text)!
      return {
        source: source as Source['source'],
        name: source === 'header' ? name!.toLowerCase() : name!,
      }
    }),
  ),
)

/** In capitals, and without a run of 24 letters and digits: a secret that was put here by mistake is found. */
const variable = pattern(
  'the name of a variable like "JWT_SECRET"',
  /^(?!.*[A-Z\d]{24})[A-Z][A-Z\d_]*$/,
)
const texts = list(v.pipe(v.string('a text'), v.nonEmpty('a text')))

const symmetric = ['HS256', 'HS384', 'HS512']
// Ed25519 is EdDSA by its newer name (RFC 9864).
const asymmetric = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

const jwtFields = {
  /** The name of the variable (a secret of the Worker) that holds the secret of HS256, HS384 or HS512, at least 32 bytes. */
  secret: v.optional(variable),
  /** The URL of the issuer's public keys (RFC 7517): fetched once per isolate, renewed in the background, kept if that fails. */
  jwks: v.optional(
    v.custom<string>(
      (input) =>
        typeof input === 'string' &&
        URL.canParse(input) &&
        // Without TLS on this machine only.
        /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/))[^\s@]+$/.test(input),
      'a URL like "https://issuer.example.com/.well-known/jwks.json"',
    ),
  ),
  /** Defaults to HS256 with `secret`; to RS256, PS256, ES256, Ed25519 and EdDSA with `jwks`. */
  algorithms: v.optional(list(oneOf(...symmetric, ...asymmetric))),
  /** The accepted values of `iss`. Defaults to any. */
  issuer: v.optional(texts),
  /** The accepted values of `aud`. Defaults to any. */
  audience: v.optional(texts),
  /** Defaults to `'bearer'`. */
  from: v.optional(from, 'bearer'),
}

/** How tokens are verified whose claims are keys: JSON Web Tokens (RFC 7519). One of `secret` and `jwks`. */
export interface JwtOptions extends Input<typeof jwtFields>, Named {}

/** The same, parsed. */
export type Jwt = v.InferOutput<typeof jwt>

export const jwt = named<JwtOptions>()(
  v.pipe(
    object(jwtFields, ({ algorithms }, problem, { secret, jwks }) => {
      if ((secret === undefined) === (jwks === undefined)) {
        problem([secret === undefined ? 'secret' : 'jwks'], 'one of secret and jwks')
        return
      }
      // A public key taken for a shared secret would let any client sign (RFC 8725, 2.1).
      const [fitting, other] =
        secret === undefined ? [asymmetric, symmetric] : [symmetric, asymmetric]
      algorithms?.forEach((name, index) => {
        if (other.includes(name)) problem(['algorithms', index], `one of ${fitting.join(', ')}`)
      })
    }),
    v.transform((input) => ({
      ...input,
      algorithms:
        input.algorithms ??
        (input.secret ? ['HS256'] : ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']),
    })),
  ),
)

const apiKeyFields = {
  /** Defaults to `['header:x-api-key', 'bearer']`. */
  from: v.optional(from, ['header:x-api-key', 'bearer']),
  /**
   * The name of the variable that lists the SHA-256 (hex) of each valid key, between spaces or commas; any other is unverified.
   * Defaults to no list: any key is accepted.
   */
  known: v.optional(variable),
}

/** Where API keys are read from, and which are known. */
export interface ApiKeyOptions extends Input<typeof apiKeyFields>, Named {}

/** The same, parsed. */
export type ApiKeys = v.InferOutput<typeof apiKeys>

export const apiKeys = named<ApiKeyOptions>()(object(apiKeyFields))
