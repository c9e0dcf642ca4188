import type { Bindings } from './bindings.ts'
import { compile, type Describe } from './descriptor.ts'
import { keyReaders } from './key.ts'
import { createLive } from './live.ts'
import type { Log } from './log.ts'
import { type Config, parseLive } from './policy.ts'
import type { Surroundings } from './seen.ts'
import { createUpstashReader } from './store/upstash.ts'

/** What a configuration makes of requests, and where it is told so, what a live document makes of them. */
export function createRules(config: Config, options: object, log: Log): Describe {
  // One for all documents: an issuer's keys stay in hand, whatever the policies do.
  const readers = keyReaders(config, log)
  const fallback = compile(config, log, readers)
  const { live } = config
  if (!live) return fallback
  const current = createLive<Describe>({
    live,
    fallback,
    compile: (document) => compile(parseLive(document, options), log, readers),
    read: (surroundings) => readLive(live.from, live.key, surroundings),
    log,
  })
  return (seen) => current(seen)(seen)
}

async function readLive(from: string, key: string, { env }: Surroundings): Promise<string | null> {
  if (from === 'redis') {
    const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = env as Bindings
    return createUpstashReader({ url, token })(key)
  }
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}
