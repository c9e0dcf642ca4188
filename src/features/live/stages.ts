import * as v from 'valibot'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import { type Config, parse } from '../../core/config/parse.ts'
import { object } from '../../core/config/schema/shapes.ts'
import { createUpstashReader } from '../../core/connection/upstash/upstash.ts'
import { databaseIn } from '../../core/decide/database.ts'
import type { Feature, Stages } from '../../core/feature.ts'
import type { Rules } from '../../core/program/match.ts'
import { createLive } from './live.ts'

export const compile: Feature['compile'] = ({ config, log }) => {
  const { live } = config
  if (!live) return {}
  return {
    rules: ({ own, options, compile, observer }) =>
      createLive<Rules>({
        live,
        fallback: own,
        compile: (document) => compile(withDocument(document, options)),
        read: (runtime) => read(live, config, runtime, observer),
        log,
      }),
  }
}

/** Reads the text of the document. */
async function read(
  { from, key }: NonNullable<Config['live']>,
  config: Config,
  { env }: RuntimeContext,
  observer: Stages['observer'],
): Promise<string | null> {
  if (from === 'redis') {
    return createUpstashReader({ ...databaseIn(config, env), observer })(key)
  }
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}

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
