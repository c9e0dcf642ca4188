/** Encodes calls of the Lua script: KEYS and ARGV. lua/README.md is the contract. */
import { hasOwnKey } from '../../base/units.ts'
import { standsIn } from '../line.ts'
import type { Idempotency, Limit, StoreRequest } from '../store.ts'
import { checkCall, headerText, idempotencyText, penaltyOf, requestText } from './arguments.ts'
import type { Codec } from './part.ts'

export interface ScriptCall {
  keys: string[]
  args: string[]
}

/**
 * Encodes a call of the script.
 * @param namespace a part of every key; defaults to none
 * @param codec of the features of the limits; defaults to none
 * @throws {StoreError} `internal` if a value is invalid
 */
export function encode(
  requests: StoreRequest[],
  now?: number,
  idempotency?: Idempotency,
  namespace?: string,
  codec: Codec = {},
): ScriptCall {
  const subject = idempotency ? undefined : onlySubject(requests)
  const keys = subject === undefined ? keysOf(requests, namespace) : [recordOf(subject, namespace)]
  checkCall(requests.length, keys.length, now)
  const args = [headerText(requests, now, idempotency !== undefined)]
  if (idempotency) {
    keys.unshift(recordOf(idempotency.key, namespace))
    args.push(idempotencyText(idempotency, keys))
  }
  const [keyIndex, recordIndex] = subject === undefined ? indexesIn(keys, namespace) : [one, one]
  for (const request of requests) {
    const number = args.length + (idempotency ? -1 : 0)
    args.push(requestText(request, number, keyIndex, recordIndex, codec))
  }
  return { keys, args }
}

const one = () => 1

function indexesIn(keys: string[], namespace?: string) {
  const indexes = new Map(keys.map((key, index) => [key, index + 1]))
  return [
    (limit: Limit) => indexes.get(keyOf(limit, namespace))!,
    ({ subject }: Limit) => indexes.get(recordOf(subject, namespace))!,
  ] as const
}

/** The subject of all limits, if its record has all states: then the call has one key. Most calls do. */
function onlySubject(requests: StoreRequest[]): string | undefined {
  const subject = requests[0]?.limits[0]?.subject
  for (const { limits } of requests) {
    for (const limit of limits)
      if (limit.subject !== subject || hasOwnKey(limit.terms.algorithm)) return undefined
  }
  return subject
}

/** The KEYS of a call without an idempotency key: the records, then the keys of logs and slots. */
export function keysOf(requests: StoreRequest[], namespace?: string): string[] {
  const records = new Set<string>()
  const others = new Set<string>()
  for (const request of requests) {
    for (const limit of request.limits) {
      const keys = hasOwnKey(limit.terms.algorithm) ? others : records
      keys.add(keyOf(limit, namespace))
      if (limit.override || penaltyOf(request, limit) || standsIn(request, limit))
        records.add(recordOf(limit.subject, namespace))
    }
  }
  return [...records, ...others]
}

/** The key of a subject's record. The braces are a hash tag: Redis Cluster keeps all keys of a subject in one slot. */
export const recordOf = (subject: string, namespace?: string) =>
  namespace ? `sluice:1:${namespace}:{${subject}}` : `sluice:1:{${subject}}`

const suffixes = { 'sliding-log': 'log', concurrency: 'slots', distinct: 'values' }

function keyOf({ subject, terms: { algorithm, tag } }: Limit, namespace?: string): string {
  const record = recordOf(subject, namespace)
  if (!hasOwnKey(algorithm)) return record
  return `${record}:${suffixes[algorithm]}:${tag}`
}
