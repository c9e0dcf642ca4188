import { outputOf } from './binary.ts'
import type { ServerKind } from './find.ts'

export const REDIS: ServerKind = {
  title: 'Redis',
  variables: ['VALKEY_BIN', 'REDIS_BIN'],
  names: [
    { name: 'redis-server' },
    { name: 'valkey-server' },
    // The same binary, in the package redis-tools. It acts as a server when called redis-server.
    { name: 'redis-check-rdb', argv0: 'redis-server' },
  ],
  install: `  macOS           brew install redis
  Debian, Ubuntu  sudo apt-get install redis-server
  Docker          docker run --rm -d -p 127.0.0.1:6379:6379 redis:7
                  and set REDIS_URL=redis://127.0.0.1:6379
  Windows         in WSL, as on Ubuntu. Run Sluice there, too`,
  cache: 'sluice-redis',
  wanted: 'redis-tools',
  // redis-tools 7.0 of Debian 12 and the libraries that a minimal system lacks.
  fallback: ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'],
  file: 'usr/bin/redis-check-rdb',
  argv0: 'redis-server',
  versionOf(binary) {
    const text = outputOf(binary, '--version')
    const [, name, version] = /^(Redis|Valkey) server v=(\S+)/im.exec(text) ?? []
    if (!name) throw new Error(`unexpected output of --version: "${text.trim().slice(0, 200)}"`)
    return `${name.toLowerCase()}-server ${version}`
  },
}
