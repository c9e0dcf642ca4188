import { onPath, type ServerBinary, versionIfAny } from '../binary.ts'
import { versionOf } from './binary.ts'
import { cachedServer } from './debian.ts'

const NONE = `No Redis here, and none could be fetched. Any of these brings one:
  macOS           brew install redis
  Debian, Ubuntu  sudo apt-get install redis-server
  Docker          docker run --rm -d -p 127.0.0.1:6379:6379 redis:7
                  and set REDIS_URL=redis://127.0.0.1:6379`

/**
 * Finds a server binary: `VALKEY_BIN` or `REDIS_BIN`, then `redis-server` or `valkey-server` on PATH,
 * then the project's cache, which is filled from the distribution's packages on Debian and Ubuntu.
 *
 * @throws Error that says how to install one.
 */
export async function findServer(log: (line: string) => void = () => {}): Promise<ServerBinary> {
  for (const name of ['VALKEY_BIN', 'REDIS_BIN']) {
    const file = process.env[name]
    if (!file) continue
    const version = versionIfAny(versionOf, { file, argv0: file, env: {} })
    if (!version) throw new Error(`${name}=${file} is no Redis server that runs here`)
    return { file, argv0: file, env: {}, source: `${version} from ${name}` }
  }
  // redis-check-rdb is the same binary: with redis-tools alone installed there is still a server.
  for (const name of ['redis-server', 'valkey-server', 'redis-check-rdb']) {
    const file = await onPath(name)
    if (!file) continue
    const argv0 = name === 'redis-check-rdb' ? 'redis-server' : name
    const version = versionIfAny(versionOf, { file, argv0, env: {} })
    if (version) return { file, argv0, env: {}, source: `${version} from PATH` }
  }
  const cached = await cachedServer(log).catch((cause: Error) => {
    throw new Error(`${NONE}\n(${cause.message.trim().split('\n').at(-1)})`, { cause })
  })
  if (!cached) throw new Error(NONE)
  return cached
}
