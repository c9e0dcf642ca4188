import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { newClient } from '../src/client.ts'
import { findServer } from '../src/find.ts'
import { freePort, startRedis } from '../src/index.ts'
import { REDIS } from '../src/redis-server.ts'
import { until } from './traffic.ts'

/** Sends one command with a connection of its own. */
export async function ask(url: string, ...command: string[]): Promise<unknown> {
  const client = newClient({ url }).on('error', () => {})
  await client.connect()
  return client.sendCommand(command).finally(() => client.destroy())
}

/** Starts a Sentinel that watches the master `main` at a port. */
export async function startSentinel(master: string, quorum: number, downMs: number) {
  const folder = await mkdtemp(join(tmpdir(), 'bridge-sentinel-'))
  const server = await findServer(REDIS)
  const own = await freePort()
  const file = join(folder, 'sentinel.conf')
  const lines = [
    `port ${own}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor main 127.0.0.1 ${master} ${quorum}`,
    `sentinel down-after-milliseconds main ${downMs}`,
    'sentinel failover-timeout main 5000',
  ]
  await writeFile(file, lines.join('\n'))
  const env = { ...process.env, ...server.env }
  const options = { argv0: server.argv0, env, stdio: 'ignore' as const }
  const child = spawn(server.file, [file, '--sentinel'], options)
  return {
    url: `redis://127.0.0.1:${own}`,
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'close')
      await rm(folder, { recursive: true })
    },
  }
}

/** Starts a master `main` with a replica, and three Sentinels that watch it. */
export async function startSentinels() {
  const master = await startRedis({ own: true })
  const { port } = new URL(master.url)
  const args = ['--replicaof', '127.0.0.1', port, '--repl-diskless-sync-delay', '0']
  const replica = await startRedis({ own: true, args })
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(port, 2, 1000)))
  const urls = sentinels.map(({ url }) => url)
  const known = async (url: string) => String(await ask(url, 'SENTINEL', 'MASTER', 'main'))
  for (const url of urls) {
    await until(async () => expect(await known(url)).toMatch(/num-slaves,1,num-other-sentinels,2/))
  }
  return {
    urls,
    replica,
    /** Kills the master. Resolves when the replica has taken its place. */
    async failOver() {
      const info = String(await ask(master.url, 'INFO', 'server'))
      process.kill(Number(/process_id:(\d+)/.exec(info)?.[1]), 'SIGKILL')
      await until(async () => expect(String(await ask(replica.url, 'ROLE'))).toContain('master'))
    },
    async stop() {
      for (const sentinel of sentinels) await sentinel.stop()
      await Promise.all([master.stop(), replica.stop()])
    },
  }
}
