import * as v from 'valibot'
import { parse } from '../../core/config/parse.ts'
import { object } from '../../core/config/schema/shapes.ts'

/** The fields of a live document. Their values are checked together with the configuration, which supplies missing fields. */
const liveDocument = object(() => ({
  policies: v.optional(v.unknown()),
  allow: v.optional(v.unknown()),
  deny: v.optional(v.unknown()),
  tables: v.optional(v.unknown()),
}))

/**
 * The options of a configuration with the fields that a live document replaces.
 * @throws {ConfigError} if the document has other fields
 */
export function withDocument(input: unknown, options: object): object {
  const fields = Object.entries(parse(liveDocument, input))
  return { ...options, ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)) }
}
