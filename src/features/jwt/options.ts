import * as v from 'valibot'
import { ConfigError } from '../../core/base/errors.ts'
import { checked, withoutSecret } from '../../core/config/schema/checked.ts'
import { from, variable } from '../../core/config/schema/credentials.ts'
import {
  type Input,
  list,
  type Named,
  named,
  object,
  oneOf,
} from '../../core/config/schema/shapes.ts'

const nonEmptyStrings = list(
  v.pipe(v.string('a non-empty string'), v.nonEmpty('a non-empty string')),
)

const symmetric = ['HS256', 'HS384', 'HS512']
// Ed25519 is the newer name of EdDSA (RFC 9864).
const asymmetric = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

const fields = () => ({
  /** Name, in capitals, of the Worker secret that contains the key of HS256, HS384 or HS512: at least 32 bytes. Set either this or `jwks`. */
  secret: v.optional(variable),
  /**
   * HTTPS URL of the issuer's public keys (JSON Web Key Set, RFC 7517). `http:` is accepted for localhost only. Each isolate fetches the
   * keys once and renews them in the background; it keeps the old ones if that fails. Set either this or `secret`.
   */
  jwks: v.optional(
    v.custom<string>(
      (input) =>
        typeof input === 'string' &&
        URL.canParse(input) &&
        /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/))[^\s@]+$/.test(input),
      'a URL like "https://issuer.example.com/.well-known/jwks.json"',
    ),
  ),
  /** The accepted signature algorithms, one or a list. Defaults to HS256 with `secret`, and to RS256, PS256, ES256, Ed25519 and EdDSA with `jwks`. */
  algorithms: v.optional(list(oneOf(...symmetric, ...asymmetric))),
  /** The accepted values of the claim `iss`, one or a list. Defaults to any. */
  issuer: v.optional(nonEmptyStrings),
  /** The accepted values of the claim `aud`, one or a list. Defaults to any. */
  audience: v.optional(nonEmptyStrings),
  /** Source of the token: `'bearer'`, `'header:<name>'`, `'cookie:<name>'`, `'query:<name>'`, or a list. The first that is present counts. Defaults to `'bearer'`. */
  from: v.optional(from, 'bearer'),
})

/** How JSON Web Tokens (RFC 7519) are verified. Requires either `secret` or `jwks`. */
export interface JwtOptions extends Input<ReturnType<typeof fields>>, Named {}

export type JwtSettings = v.InferOutput<typeof jwtOptions>

export const jwtOptions = named<JwtOptions>()(
  v.pipe(
    object(fields, ({ algorithms }, problem, { secret, jwks }) => {
      if ((secret === undefined) === (jwks === undefined)) {
        problem([secret === undefined ? 'secret' : 'jwks'], 'either secret or jwks')
        return
      }
      // If a public key were accepted as a shared secret, any client could sign tokens (RFC 8725, 2.1).
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

/** The schema of a configuration that has only these options, so that the paths of problems begin with `jwt`. */
const whole = object(() => ({ jwt: jwtOptions }))

/** @throws {ConfigError} with every problem. It shows no value that may be a secret. */
export function parseOptions(options: JwtOptions): JwtSettings {
  const { output, problems } = checked(whole, { jwt: options }, 'jwt')
  if (problems) throw new ConfigError(problems.map(withoutSecret))
  return output.jwt
}
