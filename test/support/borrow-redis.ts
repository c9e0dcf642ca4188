import { type RedisOptions, type RunningRedis, startRedis } from 'sluice-upstash-bridge'
import { openConnection } from './redis-connection.ts'

/** The idle servers of this process, which runs many test files. To start one takes longer than many of the files. */
const shared = globalThis as typeof globalThis & { idleRedis?: RunningRedis[] }

/**
 * An empty Redis, which no other test uses until it is stopped. Do not change its settings, and do not end it: for this, start one with
 * `startRedis({ own: true })`.
 */
export async function borrowRedis(options?: Pick<RedisOptions, 'own'>): Promise<RunningRedis> {
  shared.idleRedis ??= []
  const redis = shared.idleRedis.pop() ?? (await startRedis(options))
  if (!redis.owned) return redis
  const client = await openConnection(redis.url)
  const commands = ['FLUSHALL', 'SCRIPT FLUSH', 'CONFIG RESETSTAT']
  await Promise.all(commands.map((command) => client.sendCommand(command.split(' '))))
  client.destroy()
  return { ...redis, stop: async () => void shared.idleRedis!.push(redis) }
}
