import { type RedisOptions, type RunningRedis, startRedis } from 'sluice-upstash-bridge'
import { openConnection } from './redis-connection.ts'

/** The idle servers of this process, which runs many test files. To start one takes longer than many of the files. */
const shared = globalThis as typeof globalThis & { idleRedis?: RunningRedis[] }

/** The addresses of the servers that are borrowed. */
const borrowed = new Set<string>()

/**
 * An empty Redis, which no other test uses until it is stopped. Do not change its settings, and do not end it: for this, start one with
 * `startRedis({ own: true })`.
 */
export async function borrowRedis(options?: Pick<RedisOptions, 'own'>): Promise<RunningRedis> {
  shared.idleRedis ??= []
  const redis = shared.idleRedis.pop() ?? (await startRedis(options))
  if (!redis.owned) return redis
  await send(redis.url, 'FLUSHALL', 'SCRIPT FLUSH', 'CONFIG RESETSTAT')
  borrowed.add(redis.url)
  return {
    ...redis,
    async stop() {
      borrowed.delete(redis.url)
      shared.idleRedis!.push(redis)
    },
  }
}

/** Empties the servers that are borrowed, so that a repeated try of a test does not see what the first one has counted. */
export async function emptyBorrowed(): Promise<void> {
  await Promise.all([...borrowed].map((url) => send(url, 'FLUSHALL')))
}

async function send(url: string, ...commands: string[]) {
  const client = await openConnection(url)
  await Promise.all(commands.map((command) => client.sendCommand(command.split(' '))))
  client.destroy()
}
