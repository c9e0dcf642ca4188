/** Computes what Upstash bills for a call of the script, from its answer. */
import { StoreError, type StoreErrorCode } from '../../core/base/errors.ts'
import type { ScriptAnswer } from '../../core/connection/observed-call.ts'

/** Errors after which Redis has run at least the command itself. */
const RUN: StoreErrorCode[] = ['redis-error', 'database-full']

/**
 * The number of billed commands. An error of Redis counts as one command, because it does not tell what ran before it.
 * @param sendsTime true with `clock: 'edge'`
 */
export function billOf(answer: ScriptAnswer, sendsTime: boolean): number {
  const reads = sendsTime ? 2 : 3 // EVALSHA, TIME, and GET or MGET
  if (answer instanceof StoreError) {
    if (answer.code === 'idempotency-conflict' || answer.cause === 'declined') return reads
    return RUN.includes(answer.code) ? 1 : 0
  }
  const [head, ...requests] = answer.split(' ')
  const [, counted] = /:(\d+)$/.exec(head!) ?? []
  if (counted) return Number(counted)
  // A compiled script does not count: each of its requests has a record, which it writes if no limit refuses.
  return reads + requests.filter((request) => !request.includes('-')).length
}
