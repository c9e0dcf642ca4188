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
  // Lower case, no default port, Punycode: a browser's `Origin` is compared to the letter.
  v.transform((input) => (input === '*' ? input : new URL(input).origin)),
)

const fields = {
  /** Origins of pages, such as `https://app.example.com`, or `*`. */
  origins: list(origin),
  /** Whether pages that send cookies may read them. Defaults to false. */
  credentials: v.optional(flag, false),
}

/** Which pages of other origins may read refusals (the Fetch standard's CORS protocol). */
export interface CorsOptions extends Input<typeof fields>, Named {}

export const cors = named<CorsOptions>()(
  object(fields, ({ origins, credentials }, problem) => {
    if (credentials && origins?.includes('*')) {
      problem(['origins'], 'no "*" where credentials may be sent (browsers refuse it)')
    }
  }),
)
