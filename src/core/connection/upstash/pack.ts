/** Packs lists of requests into as few calls of the script as possible, and divides the replies again. */
import { StoreError } from '../../base/errors.ts'
import type { Idempotency, StoreRequest, StoreResult } from '../store.ts'
import type { Codec } from './part.ts'
import { decode } from './reply.ts'
import { encode, keysOf, type ScriptCall } from './script.ts'

/** Consecutive lists that go in one call of the script. */
export interface Pack {
  lists: StoreRequest[][]
  idempotency?: Idempotency | undefined
}

/** The maximum of one call of the script. An idempotency key does not count towards these keys. */
const MAX_KEYS = 128
const MAX_REQUESTS = 128

/** Packs lists in order into as few packs as possible. Each further pack gets its own idempotency key. */
export function pack(lists: StoreRequest[][], idempotency?: Idempotency): Pack[] {
  if (surelyFits(lists)) return [{ lists: lists.map(withoutLeadingFollows), idempotency }]
  const packs: Pack[] = []
  let keys = new Set<string>()
  let requests = 0
  for (const list of lists) {
    const listKeys = keysOf(list)
    const newKeys = listKeys.filter((key) => !keys.has(key))
    const fits = keys.size + newKeys.length <= MAX_KEYS && requests + list.length <= MAX_REQUESTS
    if (packs.length === 0 || !fits) {
      packs.push({
        lists: [],
        idempotency:
          packs.length > 0 ? withSuffix(idempotency, `.${packs.length + 1}`) : idempotency,
      })
      keys = new Set(listKeys)
      requests = 0
    } else {
      for (const key of newKeys) keys.add(key)
    }
    packs.at(-1)!.lists.push(withoutLeadingFollows(list))
    requests += list.length
  }
  return packs
}

/** True if one call is enough, since a limit has at most two keys. Batches are so small, and naming their keys twice takes time. */
function surelyFits(lists: StoreRequest[][]): boolean {
  let [keys, requests] = [0, 0]
  for (const list of lists) {
    requests += list.length
    for (const { limits } of list) keys += 2 * limits.length
  }
  return lists.length > 0 && keys <= MAX_KEYS && requests <= MAX_REQUESTS
}

/** Splits a pack into one pack for each list, each with its own idempotency key. */
export const unpack = ({ lists, idempotency }: Pack): Pack[] =>
  lists.map((list, index) => ({
    lists: [list],
    idempotency: withSuffix(idempotency, `-${index + 1}`),
  }))

const withSuffix = (idempotency: Idempotency | undefined, suffix: string) =>
  idempotency && { ...idempotency, key: idempotency.key + suffix }

/** Turns the leading follows of a list into takes, so that they do not follow a request of the list before. They mean the same. */
function withoutLeadingFollows(list: StoreRequest[]): StoreRequest[] {
  const first = list.findIndex(({ mode }) => mode !== 'follow')
  const leading = first === -1 ? list.length : first
  return list.map((request, index) => (index < leading ? { ...request, mode: 'take' } : request))
}

/**
 * The call of the general script.
 * @throws {StoreError} `internal` if a value is invalid
 */
export const callOf = (
  { lists, idempotency }: Pack,
  now?: number,
  namespace?: string,
  codec?: Codec,
): ScriptCall => encode(joined(lists), now, idempotency, namespace, codec)

export const joined = (lists: StoreRequest[][]) => (lists.length === 1 ? lists[0]! : lists.flat())

/** Divides the answer to a call into one reply for each list. */
export function repliesOf(
  { lists, idempotency }: Pack,
  answer: unknown,
  codec?: Codec,
): StoreResult[] {
  if (answer instanceof StoreError) return lists.map(() => answer)
  const reply = decode(answer, joined(lists), idempotency, codec)
  if (!reply) return lists.map(() => new StoreError('bad-reply'))
  if (lists.length === 1) return [reply]
  const { states, ...rest } = reply
  let next = 0
  return lists.map((list) => {
    next += list.length
    return { ...rest, states: states.slice(next - list.length, next) }
  })
}
