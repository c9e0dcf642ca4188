import * as v from 'valibot'
import { list, pattern } from './shapes.ts'

/** A place that a credential is read from. `bearer` is `Authorization: Bearer …`. */
export type CredentialSource =
  | 'bearer'
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`

/** A parsed `CredentialSource`. Header names are in lower case. */
export type Source = NamedSource | { source: 'bearer'; name: string }

/** A header, a cookie or a query parameter. */
export interface NamedSource {
  source: 'header' | 'cookie' | 'query'
  name: string
}

export const from = list(
  v.pipe(
    pattern<CredentialSource>(
      '"bearer", "header:<name>", "cookie:<name>" or "query:<name>"',
      /^(bearer|(header|cookie):[\w!#$%&'*+.^`|~-]+|query:\S+)$/,
    ),
    v.transform((text): Source => {
      const [, source, name] = /^(\w+):?(.*)$/.exec(text) as unknown as [
        string,
        Source['source'],
        string,
      ]
      return { source, name: source === 'header' ? name.toLowerCase() : name }
    }),
  ),
)

/** Accepts only capitals and no run of 24 letters and digits, to refuse a secret that is written here by mistake. */
export const variable = pattern(
  'the name of a variable like "JWT_SECRET"',
  /^(?!.*[A-Z\d]{24})[A-Z][A-Z\d_]*$/,
)
