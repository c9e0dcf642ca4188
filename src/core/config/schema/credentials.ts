import * as v from 'valibot'
import { type Input, list, type Named, named, object, pattern } from './shapes.ts'

/** A place that a credential is read from. `bearer` is `Authorization: Bearer …`. */
export type CredentialSource =
  | 'bearer'
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`

/** A parsed `CredentialSource`. Header names are in lower case. */
export interface Source {
  source: 'bearer' | 'header' | 'cookie' | 'query'
  name: string
}

export const from = list(
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

/** Accepts only capitals and no run of 24 letters and digits, to refuse a secret that is written here by mistake. */
export const variable = pattern(
  'the name of a variable like "JWT_SECRET"',
  /^(?!.*[A-Z\d]{24})[A-Z][A-Z\d_]*$/,
)
const apiKeyFields = () => ({
  /**
   * Source of the key: `'bearer'`, `'header:<name>'`, `'cookie:<name>'`, `'query:<name>'`, or a list. The first that is present counts.
   * Defaults to `['header:x-api-key', 'bearer']`.
   */
  from: v.optional(from, ['header:x-api-key', 'bearer']),
  /**
   * Name, in capitals, of the variable with the SHA-256 of each valid key in hex, separated by spaces or commas. Any other key is unverified.
   * Defaults to no list, which accepts any key.
   */
  known: v.optional(variable),
})

/** The source of API keys, and the list of known keys. */
export interface ApiKeyOptions extends Input<ReturnType<typeof apiKeyFields>>, Named {}

export type ApiKeys = v.InferOutput<typeof apiKeys>

export const apiKeys = named<ApiKeyOptions>()(object(apiKeyFields))
