import { StoreError } from '../../base/errors.ts'
import type { Idempotency, StoreRequest, StoreResult } from '../store.ts'
import { decode, encode, keysOf, type ScriptCall } from './script.ts'

/** Consecutive lists that one call of the script decides. */
export interface Pack {
  lists: StoreRequest[][]
  idempotency?: Idempotency | undefined
}

/** The bounds of the script. The idempotency key is one key more. */
const MAX_KEYS = 128
const MAX_REQUESTS = 128

/** Packs lists in their order into as few packs as possible. */
export function pack(lists: StoreRequest[][], idempotency?: Idempotency): Pack[] {
  const packs: Pack[] = []
  let keys = new Set<string>()
  let requests = 0
  for (const list of lists) {
    const own = keysOf(list)
    const more = [...own].filter((key) => !keys.has(key))
    const fits = keys.size + more.length <= MAX_KEYS && requests + list.length <= MAX_REQUESTS
    if (packs.length === 0 || !fits) {
      packs.push({
        lists: [],
        idempotency: packs.length > 0 ? named(idempotency, `.${packs.length + 1}`) : idempotency,
      })
      keys = own
      requests = 0
    } else {
      for (const key of more) keys.add(key)
    }
    packs.at(-1)!.lists.push(apart(list))
    requests += list.length
  }
  return packs
}

/** Packs each list of a pack by itself. */
export const unpack = ({ lists, idempotency }: Pack): Pack[] =>
  lists.map((list, index) => ({ lists: [list], idempotency: named(idempotency, `-${index + 1}`) }))

const named = (idempotency: Idempotency | undefined, suffix: string) =>
  idempotency && { ...idempotency, key: idempotency.key + suffix }

/** Makes leading follows of a list takes, as which they are decided anyway, so that they do not follow the list before. */
function apart(list: StoreRequest[]): StoreRequest[] {
  const first = list.findIndex(({ mode }) => mode !== 'follow')
  const leading = first === -1 ? list.length : first
  return list.map((request, index) => (index < leading ? { ...request, mode: 'take' } : request))
}

export const callOf = (
  { lists, idempotency }: Pack,
  now?: number,
  namespace?: string,
): ScriptCall => encode(lists.flat(), now, idempotency, namespace)

/** Divides the answer to a call by list. */
export function repliesOf(
  { lists, idempotency }: Pack,
  answer: number[] | StoreError,
): StoreResult[] {
  if (answer instanceof StoreError) return lists.map(() => answer)
  const reply = decode(answer, lists.flat(), idempotency)
  if (!reply) return lists.map(() => new StoreError('bad-reply'))
  const { states, ...rest } = reply
  let next = 0
  return lists.map((list) => {
    next += list.length
    return { ...rest, states: states.slice(next - list.length, next) }
  })
}
