/** The only file that knows Lua: the script's text, its arguments, its reply. The contract is lua/README.md. */
/// <reference path="../../lua.d.ts" />
import argumentsText from '../../../lua/arguments.lua'
import concurrency from '../../../lua/concurrency.lua'
import decide from '../../../lua/decide.lua'
import fixedWindow from '../../../lua/fixed_window.lua'
import penalty from '../../../lua/penalty.lua'
import slidingLog from '../../../lua/sliding_log.lua'
import slidingWindow from '../../../lua/sliding_window.lua'
import tokenBucket from '../../../lua/token_bucket.lua'
import type { QuotaState } from '../../base/decision.ts'
import type { Idempotency, Limit, StoreReply, StoreRequest, Terms } from '../store.ts'

/** Removes comment lines and indentation: the first call of every isolate sends the whole text. */
const trim = (lua: string) => lua.replace(/^[ \t]*(--.*)?\n|^[ \t]+/gm, '')

/** The whole script. Upstash honours the flag only in the first bytes. */
export const script = `#!lua flags=allow-key-locking\n${[
  fixedWindow,
  slidingWindow,
  slidingLog,
  tokenBucket,
  concurrency,
  penalty,
  argumentsText,
  decide,
]
  .map(trim)
  .join('')}`

/** The script's SHA-1 in hex, as EVALSHA expects it. */
export async function scriptSha(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(script))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The algorithms with a key of their own, and the part of that key after the subject. */
const apart: Partial<Record<Terms['algorithm'], string>> = {
  'sliding-log': 'log',
  concurrency: 'slots',
}

/** KEYS and ARGV of one call. */
export interface Call {
  keys: string[]
  args: string[]
}

/** @param namespace of all keys; none by default */
export function encode(
  requests: StoreRequest[],
  now?: number,
  idempotency?: Idempotency,
  namespace?: string,
): Call {
  const places = new Map<string, string>()
  const place = (key: string) => {
    const known = places.get(key) ?? String(places.size + 1)
    places.set(key, known)
    return known
  }
  const args = [now === undefined ? '' : String(now)]
  if (idempotency) {
    const { key, fingerprint, forMs } = idempotency
    const unused = ['', '', '', '']
    args.push(
      '0',
      'idempotency',
      place(recordOf(key, namespace)),
      fingerprint,
      'idempotency',
      '',
      String(forMs),
      ...unused,
    )
  }
  requests.forEach((request, index) => {
    const asked = [String(index + 1), request.mode]
    for (const limit of request.limits) {
      const { subject, terms, cost } = limit
      args.push(
        ...asked,
        place(keyOf(limit, namespace)),
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
      const first = request.mode === 'ban' ? (request.banMs ?? banMs) : banMs
      const numbers = [after, withinMs, first, maxMs].map(String)
      const record = place(recordOf(subject, namespace))
      args.push(...asked, record, tag, 'penalty', ...numbers, 'first-request', '')
    }
  })
  return { keys: [...places.keys()], args }
}

/** The keys that `encode` puts into KEYS if there is no namespace. */
export function keysOf(requests: StoreRequest[]): Set<string> {
  const keys = requests.flatMap((request) =>
    request.limits.flatMap((limit) =>
      penaltyOf(request, limit) ? [keyOf(limit), recordOf(limit.subject)] : [keyOf(limit)],
    ),
  )
  return new Set(keys)
}

/** The key of a subject's record. The braces put all keys of a subject into one hash slot of Redis Cluster, in every namespace. */
export const recordOf = (subject: string, namespace?: string) =>
  namespace ? `sluice:1:${namespace}:{${subject}}` : `sluice:1:{${subject}}`

function keyOf({ subject, terms }: Limit, namespace?: string): string {
  const own = apart[terms.algorithm]
  const record = recordOf(subject, namespace)
  return own ? `${record}:${own}:${terms.tag}` : record
}

/** The alignment of a window, its calendar period, or the id of slots, by algorithm. */
function column10Of({ terms, period, slot = '' }: Limit): string {
  if (terms.algorithm === 'concurrency') return slot
  return terms.algorithm === 'fixed-window' && period ? period.join(',') : terms.align
}

/** A refund neither counts nor bans. */
const penaltyOf = ({ mode }: StoreRequest, { penalty }: Limit) =>
  mode === 'refund' ? undefined : penalty

/** The reply of the script, or `undefined` if it has another form. */
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
