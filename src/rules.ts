import type { Bindings } from './bindings.ts'
import { compile, type Describe } from './descriptor.ts'
import { keyReaders } from './key.ts'
import { createLive } from './live.ts'
import type { Log } from './log.ts'
import { type Config, parseLive } from './policy.ts'
import type { Surroundings } from './seen.ts'
import { createUpstashReader } from './store/upstash.ts'

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
): (surroundings: Surroundings) => Rules {
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
    read: (surroundings) => readLive(live.from, live.key, surroundings),
    log,
  })
}

async function readLive(from: string, key: string, { env }: Surroundings): Promise<string | null> {
  if (from === 'redis') {
    const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = env as Bindings
    return createUpstashReader({ url, token })(key)
  }
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}
