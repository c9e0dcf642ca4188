import * as v from 'valibot'
import { flag, type Input, list, type Named, named, object } from './shapes.ts'

const origin = v.pipe(
  v.custom<string>(
    (input) =>
      typeof input === 'string' &&
      /^(\*|https?:\/\/[^\s\\/?#@,*]+)$/i.test(input) &&
      (input === '*' || URL.canParse(input)),
    'an origin like "https://app.example.com", or "*"',
  ),
  // Lower case, no default port, Punycode: the form that browsers send in `Origin`.
  v.transform((input) => (input === '*' ? input : new URL(input).origin)),
)

const fields = () => ({
  /** An origin or a list of origins whose pages may read the answers, such as `'https://app.example.com'`; or `'*'` for all. Required. */
  origins: list(origin),
  /** Lets pages read answers to requests with cookies. Cannot be combined with the origin `'*'`. Defaults to false. */
  credentials: v.optional(flag, false),
})

/** Access of web pages of other origins to refusals (CORS protocol of the Fetch standard). */
export interface CorsOptions extends Input<ReturnType<typeof fields>>, Named {}

export const cors = named<CorsOptions>()(
  object(fields, ({ origins, credentials }, problem) => {
    if (credentials && origins?.includes('*')) {
      problem(['origins'], 'no "*" together with credentials: true (browsers refuse it)')
    }
  }),
)
