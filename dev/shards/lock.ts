/** A lock on the beginning of a move. Two tools that prepare at the same time would delete what the other one has moved. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { moveKey } from '../../src/shards/move/places.ts'
import { command, type ShardDatabase } from './database.ts'

/** Longer than a request may take, so that the lock does not end before it is renewed. */
const LOCK_MS = 40_000
const WAIT_MS = 60_000
const RETRY_MS = 500

/** Changes the TTL of the lock if it is still the own one. A TTL of 0 deletes it. */
const EXPIRE = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`

/**
 * Runs a task while no other tool runs one.
 * @param task gets a function that renews the lock, to call at least every few seconds
 * @throws Error if another tool has the lock for a minute, or if the lock is lost
 */
export async function withLock(
  database: ShardDatabase,
  namespace: string | undefined,
  task: (renew: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const [key, id] = [`${moveKey(namespace)}:lock`, randomUUID()]
  const expire = (ms: number) => command(database, 'EVAL', EXPIRE, 1, key, id, ms)
  const until = Date.now() + WAIT_MS
  while ((await command(database, 'SET', key, id, 'NX', 'PX', LOCK_MS)) !== 'OK') {
    if (Date.now() > until) {
      throw new Error('Another "sluice shards move" prepares a move. Run this command again later.')
    }
    await sleep(RETRY_MS)
  }
  try {
    await task(async () => {
      if ((await expire(LOCK_MS)) !== 1) {
        throw new Error(`${database.name}: the lock on the beginning is lost. Repeat the command.`)
      }
    })
  } finally {
    await expire(0).catch(() => {}) // It ends by itself.
  }
}
