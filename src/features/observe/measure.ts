/** Measures calls to the store, and the part of each decision in them. */
import { StoreError, type StoreErrorCode } from '../../core/base/errors.ts'
import type { CallInFlight, ScriptAnswer } from '../../core/connection/observed-call.ts'
import type { StoreCall, StoreRequest, StoreResult } from '../../core/connection/store.ts'
import type { Pack } from '../../core/connection/upstash/pack.ts'
import type { Meter } from '../../core/decide/observer.ts'

/** @param together the number of lists that the caller decides together. A call may have further lists of other callers. */
export function createMeter(clock: () => number, together = 0): Meter {
  const startedAt = clock()
  const sent: StoreCall[] = []
  return {
    onCall: (call) => void sent.push(call),
    stop() {
      const use = { ms: Math.max(0, clock() - startedAt), calls: 0, billedCommands: 0 }
      for (const { lists, billedCommands } of sent) {
        const shares = Math.max(together, lists)
        use.calls += 1 / shares
        use.billedCommands += billedCommands / shares
      }
      return use
    },
  }
}

/** The modes of what is sent for requests. A call without any is an operator's, or only reads. */
const FOR_REQUESTS = new Set<StoreRequest['mode']>(['take', 'follow', 'refund', 'debt'])

export const isForRequests = (sent: Pack[]): boolean =>
  sent.some(({ requests }) => requests.some(({ mode }) => FOR_REQUESTS.has(mode)))

/** @param clock ms since the epoch */
export function beginCall(
  sent: Pack[],
  ended: (call: StoreCall) => void,
  clock: () => number,
): CallInFlight {
  const startedAt = clock()
  let lists = 0
  for (const { lengths } of sent) lists += lengths?.length ?? 1
  const call: StoreCall = { ms: 0, billedCommands: 0, lists }
  return {
    call,
    end(replies, bill) {
      call.ms = Math.max(0, clock() - startedAt)
      const code = failureOf(replies)
      if (code) call.code = code
      if (typeof bill === 'number') call.billedCommands = bill
      else for (const one of bill.answers) call.billedCommands += billOf(one, bill.sendsTime)
      ended(call)
    },
  }
}

/** The error of a failed call. A lost script, after which the call is repeated, and an idempotency key of another call are no failures. */
function failureOf(replies: StoreResult[]): StoreErrorCode | undefined {
  const [first] = replies
  if (!(first instanceof StoreError) || first.cause === 'NOSCRIPT' || isRead(first)) return
  return replies.every((answer) => answer instanceof StoreError) ? first.code : undefined
}

/** True for an error that the script reports after it has read. */
const isRead = ({ code, cause }: StoreError) =>
  code === 'idempotency-conflict' || cause === 'declined'

/** Errors after which Redis has run at least the command itself. */
const RUN: StoreErrorCode[] = ['redis-error', 'database-full']

/** The commands that Upstash bills for a call of the script. An error of Redis is one, because it does not tell what ran before it. */
export function billOf(answer: ScriptAnswer, sendsTime: boolean): number {
  const reads = sendsTime ? 2 : 3 // EVALSHA, TIME, and GET or MGET
  if (answer instanceof StoreError) {
    if (isRead(answer)) return reads
    return RUN.includes(answer.code) ? 1 : 0
  }
  const [head, ...requests] = answer.split(' ')
  const [, counted] = /:(\d+)$/.exec(head!) ?? []
  if (counted) return Number(counted)
  // A compiled script does not count: each of its requests has a record, which it writes if no limit refuses.
  return reads + requests.filter((request) => !request.includes('-')).length
}
