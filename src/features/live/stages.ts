import type { RuntimeContext } from '../../core/base/runtime.ts'
import type { Config } from '../../core/config/parse.ts'
import { createUpstashReader } from '../../core/connection/upstash/upstash.ts'
import { databaseIn } from '../../core/decide/database.ts'
import type { Feature, Stages } from '../../core/feature.ts'
import type { Rules } from '../../core/program/match.ts'
import { withDocument } from './document.ts'
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
