import * as v from 'valibot'
import { list, object, oneOf, pattern } from './shapes.ts'

/** Where a credential is read from, parsed. */
export interface Source {
  source: 'bearer' | 'header' | 'cookie' | 'query'
  name: string
}

const from = list(
  v.pipe(
    pattern(
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

const symmetric = ['HS256', 'HS384', 'HS512'] as const
const asymmetric = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519', // the same by its newer name (RFC 9864)
] as const

/** How tokens are verified, parsed. */
export interface Jwt {
  secret?: string | undefined
  jwks?: string | undefined
  algorithms: string[]
  issuer?: string[] | undefined
  audience?: string[] | undefined
  from: Source[]
}

const jwtFields = object(
  {
    secret: v.optional(variable),
    jwks: v.optional(
      v.custom<string>(
        (input) =>
          typeof input === 'string' &&
          URL.canParse(input) &&
          // In the open only where nobody listens: on this machine.
          /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/))[^\s@]+$/.test(input),
        'a URL like "https://issuer.example.com/.well-known/jwks.json"',
      ),
    ),
    algorithms: v.optional(list(oneOf(...symmetric, ...asymmetric))),
    issuer: v.optional(texts),
    audience: v.optional(texts),
    from: v.optional(from, 'bearer'),
  },
  ({ secret, jwks, algorithms }, problem) => {
    if ((secret === undefined) === (jwks === undefined)) {
      problem([secret === undefined ? 'secret' : 'jwks'], 'one of secret and jwks')
      return
    }
    // A public key taken for a shared secret would let anybody sign (RFC 8725, 2.1).
    const [fitting, other]: (readonly unknown[])[] =
      secret === undefined ? [asymmetric, symmetric] : [symmetric, asymmetric]
    if (!Array.isArray(algorithms)) return
    algorithms.forEach((name, index) => {
      if (other!.includes(name)) problem(['algorithms', index], `one of ${fitting!.join(', ')}`)
    })
  },
)

export const jwt = v.pipe(
  jwtFields,
  v.transform(
    (input): Jwt => ({
      ...input,
      algorithms:
        input.algorithms ??
        (input.secret ? ['HS256'] : ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']),
    }),
  ),
)

/** Where API keys are read from, parsed, and the variable that lists the known ones. */
export interface ApiKeys {
  from: Source[]
  known?: string | undefined
}

export const apiKeys: v.GenericSchema<unknown, ApiKeys> = object({
  from: v.optional(from, ['header:x-api-key', 'bearer']),
  known: v.optional(variable),
})
