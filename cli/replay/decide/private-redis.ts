import { createClient, ErrorReply } from 'redis'
import { startRedis } from 'sluice-upstash-bridge'
import { batchScript } from './batch-script.ts'

/**
 * Deletes the keys whose states have all run out. Their TTL would keep them for a day.
 * ARGV: the time, and the longest window of a policy, ms. The members of a log live for one window after their score.
 */
const SWEEP = `
local now, longest, cursor = tonumber(ARGV[1]), tonumber(ARGV[2]), '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    local ends = 0
    if redis.call('TYPE', key).ok == 'string' then
      for time, life in string.gmatch(redis.call('GET', key), ';[^;:]+:(%d+):(%d+)') do
        ends = math.max(ends, time + life)
      end
    else
      ends = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] + longest
    end
    if ends <= now then
      redis.call('DEL', key)
    end
  end
until cursor == '0'
return redis.call('DBSIZE')`

const FEW = 100_000

/** A Redis of this process alone, with the script. */
export interface PrivateRedis {
  url: string
  /** Runs the batch script. Resolves with the reply, or with an `Error`. Never rejects. */
  decide(args: string[]): Promise<unknown>
  /**
   * Deletes the keys whose states have run out, if there are twice as many keys as after the last time.
   * @returns the number of keys
   */
  sweep(now: number, longestMs: number): Promise<number>
  stop(): Promise<void>
}

/** @param few how many keys are not worth a sweep */
export async function openPrivateRedis({ few = FEW } = {}): Promise<PrivateRedis> {
  const redis = await startRedis({ own: true })
  const client = createClient({
    url: redis.url,
    socket: { reconnectStrategy: false },
    commandOptions: { timeout: 0 }, // none: a timer for each command takes CPU time, and a sweep may take seconds
  })
  client.on('error', () => {}) // each command reports it
  await client.connect()
  const load = async (script: string) =>
    String(await client.sendCommand(['SCRIPT', 'LOAD', script]))
  const [decide, remove] = [await load(batchScript), await load(SWEEP)]
  let sweepAbove = few

  const toError = (error: Error) =>
    error instanceof ErrorReply
      ? error
      : new Error('Redis ended during the replay. Run the command again.', { cause: error })

  return {
    url: redis.url,
    decide: (args) => client.sendCommand(['EVALSHA', decide, '0', ...args]).catch(toError),
    async sweep(now, longestMs) {
      try {
        const keys = Number(await client.sendCommand(['DBSIZE']))
        if (keys <= sweepAbove) return keys
        const args = ['0', `${now}`, `${longestMs}`]
        const left = Number(await client.sendCommand(['EVALSHA', remove, ...args]))
        sweepAbove = Math.max(few, 2 * left)
        return left
      } catch (error) {
        throw toError(error as Error)
      }
    },
    async stop() {
      client.destroy()
      await redis.stop()
    },
  }
}
