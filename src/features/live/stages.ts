import * as v from 'valibot'
import { parse } from '../../core/config/parse.ts'
import { object } from '../../core/config/schema/shapes.ts'
import { createUpstashReader } from '../../core/connection/upstash/upstash.ts'
import { databaseIn } from '../../core/decide/database.ts'
import type { Feature } from '../../core/feature.ts'
import type { Rules } from '../../core/program/match.ts'
import { createLive } from './live.ts'

export const compile: Feature['compile'] = ({ config, log }) => {
  const { live } = config
  if (!live) return {}
  const { from, key } = live
  return {
    rules: ({ own, options, compile, observer }) =>
      createLive<Rules>({
        live,
        fallback: own,
        compile: (document) => compile(withDocument(document, options)),
        async read({ env }) {
          if (from === 'redis')
            return createUpstashReader({ ...databaseIn(config, env), observer })(key)
          const binding = env[from.slice('kv:'.length)]
          return (binding as { get(key: string): Promise<string | null> }).get(key)
        },
        log,
      }),
  }
}

/** The fields of a live document. Their values are checked together with the configuration, which supplies missing fields. */
const liveDocument = object(() => ({
  policies: v.optional(v.unknown()),
  allow: v.optional(v.unknown()),
  deny: v.optional(v.unknown()),
  tables: v.optional(v.unknown()),
}))

/** Replaces the options by the fields of a live document. @throws {ConfigError} if it has other fields */
export function withDocument(input: unknown, options: object): object {
  const fields = Object.entries(parse(liveDocument, input))
  return { ...options, ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)) }
}
