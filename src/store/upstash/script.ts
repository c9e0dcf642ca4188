/** Encodes calls of the Lua script and decodes its replies. lua/README.md is the contract. */
import type { QuotaState } from '../../base/decision.ts'
import type { Idempotency, Limit, StoreReply, StoreRequest, Terms } from '../store.ts'

/** The suffix of the key, for algorithms whose state is not in the record of the subject. */
const separateKeys: Partial<Record<Terms['algorithm'], string>> = {
  'sliding-log': 'log',
  concurrency: 'slots',
}

/** KEYS and ARGV of one call. */
export interface ScriptCall {
  keys: string[]
  args: string[]
}

/**
 * Encodes a call of the script.
 * @param namespace a part of every key; defaults to none
 */
export function encode(
  requests: StoreRequest[],
  now?: number,
  idempotency?: Idempotency,
  namespace?: string,
): ScriptCall {
  const indexes = new Map<string, string>()
  /** The index of a key in KEYS, from 1. Adds a new key. */
  const indexOf = (key: string) => {
    const index = indexes.get(key) ?? String(indexes.size + 1)
    indexes.set(key, index)
    return index
  }
  const args = [now === undefined ? '' : String(now)]
  if (idempotency) {
    const { key, fingerprint, forMs } = idempotency
    const unused = ['', '', '', '']
    args.push(
      '0',
      'idempotency',
      indexOf(recordOf(key, namespace)),
      fingerprint,
      'idempotency',
      '',
      String(forMs),
      ...unused,
    )
  }
  requests.forEach((request, index) => {
    const requestColumns = [String(index + 1), request.mode]
    for (const limit of request.limits) {
      const { subject, terms, cost } = limit
      args.push(
        ...requestColumns,
        indexOf(keyOf(limit, namespace)),
        terms.tag,
        terms.algorithm,
        String(terms.limit),
        String(terms.windowMs),
        String(terms.burst),
        String(cost),
        column10Of(limit),
        request.mode === 'refund' ? String(request.decidedAt ?? '') : '',
      )
      const penalty = penaltyOf(request, limit)
      if (!penalty) continue
      const { tag, after, withinMs, banMs, maxMs } = penalty
      const firstBanMs = request.mode === 'ban' ? (request.banMs ?? banMs) : banMs
      const numbers = [after, withinMs, firstBanMs, maxMs].map(String)
      const record = indexOf(recordOf(subject, namespace))
      args.push(...requestColumns, record, tag, 'penalty', ...numbers, 'first-request', '')
    }
  })
  return { keys: [...indexes.keys()], args }
}

/** The KEYS of `encode` without a namespace. */
export function keysOf(requests: StoreRequest[]): Set<string> {
  const keys = requests.flatMap((request) =>
    request.limits.flatMap((limit) =>
      penaltyOf(request, limit) ? [keyOf(limit), recordOf(limit.subject)] : [keyOf(limit)],
    ),
  )
  return new Set(keys)
}

/** The key of a subject's record. The braces are a hash tag: Redis Cluster keeps all keys of a subject in one slot. */
export const recordOf = (subject: string, namespace?: string) =>
  namespace ? `sluice:1:${namespace}:{${subject}}` : `sluice:1:{${subject}}`

function keyOf({ subject, terms }: Limit, namespace?: string): string {
  const suffix = separateKeys[terms.algorithm]
  const record = recordOf(subject, namespace)
  return suffix ? `${record}:${suffix}:${terms.tag}` : record
}

/** Column 10 depends on the algorithm: the window alignment, the calendar period, or the slot id. */
function column10Of({ terms, period, slot = '' }: Limit): string {
  if (terms.algorithm === 'concurrency') return slot
  return terms.algorithm === 'fixed-window' && period ? period.join(',') : terms.align
}

/** The penalty of a limit. A refund has none: it neither counts towards a ban nor bans. */
const penaltyOf = ({ mode }: StoreRequest, { penalty }: Limit) =>
  mode === 'refund' ? undefined : penalty

/** Decodes a reply of the script. Returns `undefined` if it does not have the form of one. */
export function decode(
  reply: unknown,
  requests: StoreRequest[],
  idempotency?: Idempotency,
): StoreReply | undefined {
  const head = idempotency ? 6 : 1 // the time, and the row of the idempotency key
  const size = requests
    .flatMap((request) => request.limits.map((limit) => (penaltyOf(request, limit) ? 10 : 5)))
    .reduce((sum, numbers) => sum + numbers, head)
  if (!Array.isArray(reply) || reply.length !== size || !reply.every(Number.isSafeInteger)) {
    return undefined
  }
  let index = head
  const next = (): [number, number, number, number, number] => {
    index += 5
    return reply.slice(index - 5, index) as ReturnType<typeof next>
  }
  const stateOf = (request: StoreRequest, limit: Limit): QuotaState => {
    const [allowed, remaining, retryAfter, resetAfterMs, nextAfterMs] = next()
    const bannedForMs = penaltyOf(request, limit) ? next()[2] : 0
    return {
      allowed: allowed === 1 && bannedForMs === 0,
      remaining,
      retryAfterMs: retryAfter < 0 ? null : Math.max(retryAfter, bannedForMs),
      resetAfterMs,
      nextAfterMs,
      ...(bannedForMs > 0 && { bannedForMs }),
    }
  }
  return {
    decidedAt: reply[0],
    states: requests.map((request) => request.limits.map((limit) => stateOf(request, limit))),
    ...(idempotency && reply[1] === 1 && { replayed: true }),
  }
}
