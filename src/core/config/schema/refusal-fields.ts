import * as v from 'valibot'
import { either, type Input, type Named, named, object, pattern, whole } from './shapes.ts'

export const placeholders = [
  'limit',
  'remaining',
  'retryAfter',
  'window',
  'cost',
  'policy',
  'reason',
  'status',
]
export const PLACEHOLDER = /\{\{\s*([^{}]*?)\s*\}\}/g

/** A value as JSON; `undefined` if JSON cannot express it, such as one with a cycle or a BigInt. */
function jsonOf(input: unknown): string | undefined {
  try {
    return JSON.stringify(input)
  } catch {
    return undefined
  }
}

/** A value that JSON can express, whose placeholders are known. */
const template = <T>(expected: string, isValid: (input: unknown) => boolean = () => true) =>
  v.custom<T>(
    (input) => {
      const found = jsonOf(input)?.matchAll(PLACEHOLDER)
      return (
        found !== undefined &&
        isValid(input) &&
        [...found].every(([, name]) => placeholders.includes(name!))
      )
    },
    `${expected} with no placeholders except {{${placeholders.join('}}, {{')}}}`,
  )

const text = template<string>('text', (input) => typeof input === 'string')

const bodyFields = () => ({
  /**
   * The JSON body. A string that is only a placeholder becomes the value itself, such as a number, or `null` without a value. Defaults to
   * a problem document, if `text` is not set.
   */
  json: v.optional(template<unknown>('a JSON value')),
  /** The plain text body. Defaults to none. */
  text: v.optional(text),
  /** The HTML body, for clients that name HTML in `Accept`, with values escaped. Defaults to a page with a countdown, if no other is set. */
  html: v.optional(text),
})

/** Bodies of a refusal. `Accept` of the request chooses one. */
export interface RefusalBodies extends Input<ReturnType<typeof bodyFields>>, Named {}

/** The error format of a protocol. */
export type ErrorFormat = 'json-rpc' | 'graphql'

const isName = (input: unknown) => typeof input === 'string'

const fields = () => ({
  /**
   * The status: 400 to 599, or 200 with `body: 'json-rpc'` and `'graphql'`, whose clients read an error in it. Defaults to 429 above a
   * limit, 403 for `deny` and a missing key, 503 for `onStoreError: 'deny'`.
   */
  status: v.optional(either((input) => input === 200, whole(400, 599), v.literal(200))),
  /**
   * The body: `{ json, text, html }`, of which `Accept` of the request chooses one; or the errors of JSON-RPC (`'json-rpc'`) or GraphQL
   * (`'graphql'`), which require `bodies()`. Defaults to a problem document, and a page for browsers.
   */
  body: v.optional(
    either(
      isName,
      named<RefusalBodies>()(object(bodyFields)),
      v.picklist(['json-rpc', 'graphql'], 'an object, "json-rpc" or "graphql"'),
    ),
  ),
  /** Further header fields. Sluice itself sets the rate limit fields, `Retry-After`, `Cache-Control: no-store` and `Content-Type`. Defaults to none. */
  headers: v.optional(
    v.record(
      pattern('the name of a header', /^[\w!#$%&'*+.^`|~-]+$/),
      template<string>(
        'visible ASCII characters',
        (input) => typeof input === 'string' && /^[ -~]*$/.test(input),
      ),
      'an object',
    ),
  ),
})

/**
 * The response to a refused request. Its texts may contain placeholders such as `{{limit}}` and `{{retryAfter}}`. A text with one that has no
 * value, as in a refusal by `deny`, is not sent: the default is.
 */
export interface RefusalOptions extends Input<ReturnType<typeof fields>>, Named {}

export const refusalFields = named<RefusalOptions>()(
  object(fields, ({ status }, problem, { body }) => {
    if (status === 200 && !isName(body)) problem(['status'], STATUS)
  }),
)

const STATUS = 'a whole number from 400 to 599 (200 only with body: "json-rpc" or "graphql")'
