/** Packs lists of requests into as few calls of the script as possible, and divides the replies again. */
import { StoreError } from '../../base/errors.ts'
import { MAX_KEYS } from '../../base/units.ts'
import type { Idempotency, StoreRequest, StoreResult } from '../store.ts'
import { keysOf } from './script.ts'

/** Consecutive lists that go in one call of the script. */
export interface Pack {
  requests: StoreRequest[]
  /** The number of requests of each list. Absent for a single list. */
  lengths?: number[]
  idempotency?: Idempotency | undefined
}

/** The maximum of one call of the script, as `MAX_KEYS`, towards which an idempotency key does not count. */
const MAX_REQUESTS = 128

/** Packs lists in order into as few packs as possible. Each further pack gets its own idempotency key. */
export function pack(lists: StoreRequest[][], idempotency?: Idempotency): Pack[] {
  if (surelyFits(lists)) return [packOf(lists, idempotency)]
  const packs: StoreRequest[][][] = []
  let keys = new Set<string>()
  let requests = 0
  for (const list of lists) {
    const listKeys = keysOf(list)
    const newKeys = listKeys.filter((key) => !keys.has(key))
    const fits = keys.size + newKeys.length <= MAX_KEYS && requests + list.length <= MAX_REQUESTS
    if (packs.length === 0 || !fits) {
      packs.push([])
      keys = new Set(listKeys)
      requests = 0
    } else {
      for (const key of newKeys) keys.add(key)
    }
    packs.at(-1)!.push(list)
    requests += list.length
  }
  return packs.map((some, index) =>
    packOf(some, index > 0 ? withSuffix(idempotency, `.${index + 1}`) : idempotency),
  )
}

const packOf = (lists: StoreRequest[][], idempotency: Idempotency | undefined): Pack =>
  lists.length === 1
    ? { requests: withoutLeadingFollows(lists[0]!), idempotency }
    : {
        requests: lists.flatMap(withoutLeadingFollows),
        lengths: lists.map(({ length }) => length),
        idempotency,
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
export const unpack = ({ requests, lengths = [], idempotency }: Pack): Pack[] =>
  cut(requests, lengths).map((own, index) => ({
    requests: own,
    idempotency: withSuffix(idempotency, `-${index + 1}`),
  }))

function cut<T>(all: T[], lengths: number[]): T[][] {
  let next = 0
  return lengths.map((length) => {
    next += length
    return all.slice(next - length, next)
  })
}

const withSuffix = (idempotency: Idempotency | undefined, suffix: string) =>
  idempotency && { ...idempotency, key: idempotency.key + suffix }

/** Turns the leading follows of a list into takes, so that they do not follow a request of the list before. They mean the same. */
function withoutLeadingFollows(list: StoreRequest[]): StoreRequest[] {
  if (list[0]?.mode !== 'follow') return list
  let leads = true
  return list.map((request) => {
    leads &&= request.mode === 'follow'
    return leads ? { ...request, mode: 'take' } : request
  })
}

export function divided({ lengths }: Pack, reply: StoreResult): StoreResult[] {
  if (!lengths) return [reply]
  if (reply instanceof StoreError) return lengths.map(() => reply)
  return cut(reply.states, lengths).map((states) => ({ ...reply, states }))
}
