import { credentialsOf } from '../base/bindings.ts'
import type { Log } from '../base/log.ts'
import { type Config, parseLive } from '../config/parse.ts'
import { keyReaders } from '../match/key.ts'
import { compile, type Describe } from '../match/match.ts'
import type { RuntimeContext } from '../request/view.ts'
import { createUpstashReader } from '../store/upstash/upstash.ts'
import { createLive } from './live.ts'

/** A configuration, and what it makes of requests. */
export interface Rules {
  config: Config
  describe: Describe
}

/** The rules that hold now: a configuration's, or where it is told so, those of a live document. */
export function createRules(
  config: Config,
  options: object,
  log: Log,
): (runtime: RuntimeContext) => Rules {
  // One for all documents: an issuer's keys stay in hand, whatever the policies do.
  const readers = keyReaders(config, log)
  const compiled = (config: Config): Rules => ({ config, describe: compile(config, log, readers) })
  const fallback = compiled(config)
  const { live } = config
  if (!live) return () => fallback
  return createLive<Rules>({
    live,
    fallback,
    compile: (document) => compiled(parseLive(document, options)),
    read: (runtime) => readLive(live.from, live.key, config.shards?.[0], runtime),
    log,
  })
}

/** @param store of several databases the one that has the document */
async function readLive(
  from: string,
  key: string,
  store: string | undefined,
  { env }: RuntimeContext,
): Promise<string | null> {
  if (from === 'redis') return createUpstashReader(credentialsOf(env, store))(key)
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}
