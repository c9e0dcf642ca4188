/** Computes what Upstash bills for a call, from its requests and their reply. lua/README.md lists the commands of each request. */
import type { QuotaState } from '../../core/base/decision.ts'
import { StoreError, type StoreErrorCode } from '../../core/base/errors.ts'
import { hasOwnKey } from '../../core/base/own-key.ts'
import type { Limit, StoreRequest, StoreResult } from '../../core/connection/store.ts'
import type { Pack } from '../../core/connection/upstash/pack.ts'

/** Errors after which Redis has run at least the command itself. */
const RUN: StoreErrorCode[] = ['redis-error', 'database-full']

/**
 * The number of billed commands of a call of the script. It is exact for takes and peeks of windows and buckets. Otherwise it is an
 * estimate: sliding logs and slots count with the usual number of commands, a refund and an operation as if they change each record
 * (the reply does not tell: a restore without an override writes nothing), and an error of Redis as one command.
 * @param sendsTime true with `clock: 'edge'`
 */
export function billOf(
  { lists, idempotency }: Pack,
  answers: StoreResult[],
  sendsTime: boolean,
): number {
  const requests = lists.flat()
  const reads = idempotency || requests.some(readsRecord)
  const always = 1 + (sendsTime ? 0 : 1) + (reads ? 1 : 0)
  const first = answers[0]!
  if (first instanceof StoreError) {
    if (first.code === 'idempotency-conflict' || first.cause === 'declined') return always
    return RUN.includes(first.code) ? 1 : 0
  }
  if (first.replayed) return always
  const states = answers.flatMap((answer) => (answer instanceof StoreError ? [] : answer.states))
  const { records, others } = changesOf(requests, states)
  return always + (idempotency ? 1 : 0) + records.size + others
}

const readsRecord = ({ mode, limits }: StoreRequest) =>
  limits.some(
    (limit) =>
      !hasOwnKey(limit.terms.algorithm) ||
      limit.override ||
      (limit.penalty && !isNeverRefused(mode)),
  )

/** Refunds and debts count no refusals, so they have no penalty. */
const isNeverRefused = (mode: string) => mode === 'refund' || mode === 'debt'

/** The subjects whose record is written, and the number of commands for logs and slots. */
function changesOf(requests: StoreRequest[], states: QuotaState[][]) {
  const records = new Set<string>()
  let others = 0
  let hasPassed = true // of the last request that is not a follow
  requests.forEach((request, index) => {
    const { mode, limits } = request
    const answers = states[index]!
    const fits = answers.every(({ allowed }) => allowed)
    const charges = mode === 'take' || isNeverRefused(mode) || (mode === 'follow' && hasPassed)
    const operates = mode === 'reset' || mode === 'ban' || mode === 'unban'
    const resizes = mode === 'override' || mode === 'restore'
    limits.forEach((limit, at) => {
      const { subject, penalty, cost } = limit
      const isCharged = charges && fits && cost > 0
      if (hasOwnKey(limit.terms.algorithm)) others += commandsFor(limit, mode, isCharged)
      else if (isCharged || operates) records.add(subject)
      if (resizes) records.add(subject)
      if (
        penalty &&
        (operates || (charges && !isNeverRefused(mode) && countsRefusal(answers[at]!, penalty)))
      ) {
        records.add(subject)
      }
    })
    if (mode !== 'follow') hasPassed = fits && mode === 'take'
  })
  return { records, others }
}

/** The usual number of commands for a sliding log, or for slots. */
function commandsFor({ terms: { algorithm } }: Limit, mode: string, isCharged: boolean): number {
  if (mode === 'reset') return 1
  const isLog = algorithm === 'sliding-log'
  const reads = isLog ? 3 : 1
  if (!isCharged) return reads
  if (mode === 'refund') return reads + (isLog ? 2 : 1)
  return reads + (isLog ? 3 : 2)
}

/** True if a refusal counts towards a ban, or begins one. During a ban nothing is counted. */
function countsRefusal(
  { allowed, bannedForMs }: QuotaState,
  { banMs, maxMs }: NonNullable<Limit['penalty']>,
): boolean {
  if (allowed) return false
  // A ban that has its whole length left begins with this request. Each ban is twice as long as the one before.
  return !bannedForMs || bannedForMs === maxMs || Number.isInteger(Math.log2(bannedForMs / banMs))
}
