import type { ServerBinary } from '../binary.ts'
import { cached, type Packages } from '../debian.ts'
import { versionOf } from './binary.ts'

const REDIS: Packages = {
  title: 'Redis',
  cache: 'sluice-redis',
  wanted: 'redis-tools',
  // What redis-tools 7.0 of Debian 12 needs beyond a minimal system.
  fallback: ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'],
  // redis-check-rdb is the same binary as the server and goes by its name.
  file: 'usr/bin/redis-check-rdb',
  argv0: 'redis-server',
  versionOf,
}

/** The Redis in the project's cache, filled first (about 1.3 MB, 3 s): see `cached`. */
export function cachedServer(log: (line: string) => void): Promise<ServerBinary | undefined> {
  return cached(REDIS, log)
}
