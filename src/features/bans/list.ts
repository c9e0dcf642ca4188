/** The list of bans: a sorted set for each policy. lua/ban_list.lua is the contract. */
import { StoreError } from '../../core/base/errors.ts'
import { recordOf } from '../../core/connection/upstash/script.ts'
import { createCommander } from '../../core/connection/upstash/upstash.ts'
import type { WatchedDatabase } from '../../core/decide/engine.ts'
import { banListScript } from './script-text.ts'

/** Shorter than the deadline of an operation, which waits for its change. */
const DEADLINE_MS = 2_000

/** The set of one policy. */
export interface BanSet {
  /** The tag of its penalty. */
  tag: string
  namespace: string | undefined
}

/** A subject, with the end of its ban in ms since the epoch; 0 to remove it. */
export interface ListedBan {
  subject: string
  end: number
}

export interface Page {
  size: number
  /** Latest end first. */
  bans: ListedBan[]
}

/** `forget` removes bans that have ended early. A subject with another end stays: it was banned again. @throws {StoreError} */
export async function editBans(
  database: WatchedDatabase,
  set: BanSet,
  mode: 'change' | 'forget',
  bans: readonly ListedBan[],
  now: number,
): Promise<void> {
  const pairs = bans.flatMap(({ end, subject }) => [`${end}`, subject])
  // EVAL, two ZREMRANGE…, ZREVRANGE and PEXPIRE; for each ban ZADD or ZREM, or ZSCORE and ZREM
  const commands = 5 + (mode === 'change' ? 1 : 2) * bans.length
  await run(database, set, [`${now}`, mode, ...pairs], commands)
}

/** Reads `count` subjects whose ban ends before `end`, and all that end at `end`. Without `now` the clock of Redis counts. @throws {StoreError} */
export async function readBans(
  database: WatchedDatabase,
  set: BanSet,
  end: number,
  count: number,
  now: number | undefined,
): Promise<Page> {
  const from = end === Number.POSITIVE_INFINITY ? '+inf' : `${end}`
  // EVAL, TIME, ZREMRANGEBYSCORE, ZCARD, ZCOUNT and ZREVRANGEBYSCORE
  const commands = now === undefined ? 6 : 5
  const reply = await run(database, set, [`${now ?? ''}`, 'page', from, `${count}`], commands, true)
  const [size, rows] = Array.isArray(reply) ? reply : []
  if (typeof size !== 'number' || !Array.isArray(rows)) throw new StoreError('bad-reply')
  const bans: ListedBan[] = []
  for (let index = 0; index + 1 < rows.length; index += 2) {
    bans.push({ subject: String(rows[index]), end: Number(rows[index + 1]) })
  }
  return { size, bans }
}

/** Runs the script. Bans are rare, so each call carries it. @throws {StoreError} */
function run(
  database: WatchedDatabase,
  { tag, namespace }: BanSet,
  args: string[],
  commands: number,
  isOperators = false,
): Promise<unknown> {
  const key = `${recordOf(tag, namespace)}:bans`
  const send = createCommander({ ...database, deadlineMs: DEADLINE_MS })
  return send(['eval', banListScript, 1, key, ...args], commands, isOperators)
}
