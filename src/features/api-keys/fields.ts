/** The setting that `apiKeys()` adds. */
import * as v from 'valibot'
import { from, variable } from '../../core/config/schema/credentials.ts'
import { type Input, type Named, named, object } from '../../core/config/schema/shapes.ts'

const apiKeyFields = () => ({
  /**
   * Source of the key: `'bearer'`, `'header:<name>'`, `'cookie:<name>'`, `'query:<name>'`, or a list. The first that is present counts.
   * Defaults to `['header:x-api-key', 'bearer']`.
   */
  from: v.optional(from, ['header:x-api-key', 'bearer']),
  /**
   * Name, in capitals, of the variable with the SHA-256 of each valid key in hex, separated by spaces or commas. Any other key is
   * unverified. Defaults to no list, which accepts any key.
   */
  known: v.optional(variable),
})

/** The source of API keys, and the list of known keys. */
export interface ApiKeyOptions extends Input<ReturnType<typeof apiKeyFields>>, Named {}

/** Parsed `ApiKeyOptions`. */
export type ApiKeys = v.InferOutput<typeof apiKeys>

const apiKeys = named<ApiKeyOptions>()(object(apiKeyFields))

export const settings = () => ({
  /** The source of `api-key`, and the list of known keys. Requires `apiKeys()`. Defaults to any key in `X-Api-Key` or as a bearer token. */
  apiKeys: v.optional(apiKeys, {}),
})
