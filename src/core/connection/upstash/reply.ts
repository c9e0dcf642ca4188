/** Decodes replies of the Lua script. lua/README.md is the contract. */
import type { QuotaState } from '../../base/decision.ts'
import { hasOwnKey } from '../../base/units.ts'
import { type State, statedBy } from '../algorithms/index.ts'
import { standsIn } from '../line.ts'
import type { Idempotency, Limit, StoreReply, StoreRequest } from '../store.ts'
import { penaltyOf } from './arguments.ts'
import type { Codec } from './part.ts'

/** Decodes a reply of the script: one text for the whole call. Returns `undefined` if it does not have the form of one. */
export function decode(
  reply: unknown,
  requests: StoreRequest[],
  idempotency?: Idempotency,
  codec: Codec = {},
): StoreReply | undefined {
  if (typeof reply !== 'string') return undefined
  const texts = reply.split(' ')
  const decidedAt = Number(TIME.exec(texts[0]!)?.[1])
  if (!Number.isSafeInteger(decidedAt)) return undefined
  const mark = idempotency && texts[1] // of a replay
  if (idempotency && mark !== '0' && mark !== '1') return undefined
  let next = idempotency ? 2 : 1
  if (texts.length !== requests.length + next) return undefined
  const states: QuotaState[][] = []
  for (const request of requests) {
    const answer = requestStates(texts[next++]!, request, decidedAt, codec)
    if (!answer) return undefined
    states.push(answer)
  }
  return mark === '1' ? { decidedAt, states, replayed: true } : { decidedAt, states }
}

/** The time, and from the general script the number of commands, which `bill.ts` reads. */
const TIME = /^(\d{1,16})(?::\d+)?$/

/** Decodes the reply to one request: the limits of operators, the places in lines, a part for each limit, the rest of each ban. Each part ends with `;`. */
function requestStates(text: string, request: StoreRequest, now: number, codec: Codec) {
  const parts = text.split(';')
  const { limits } = request
  const states: QuotaState[] = []
  let overrides = 0
  let lines = 0
  for (const { override } of limits) if (override) lines += 1
  let next = lines
  for (const limit of limits) if (standsIn(request, limit)) next += 1
  let ends = next + limits.length
  for (const limit of limits) {
    const part = parts[next++]!
    const read = (limit: Limit) => stateOf(part, limit, now, codec)
    const place = standsIn(request, limit) ? parts[lines++]! : undefined
    const readInLine =
      place === undefined ? read : (limit: Limit) => codec.line?.read(place, limit, read)
    let state = limit.override
      ? codec.override?.read(parts[overrides++]!, limit, readInLine)
      : readInLine(limit)
    if (state && limit.penalty && penaltyOf(request, limit))
      state = codec.penalty?.read(parts[ends++]!, state)
    if (!state || !isSound(state)) return undefined
    states.push(state)
  }
  return parts.length === ends + 1 && parts[ends] === '' ? states : undefined
}

/** False for numbers that no state gives: those of a state that has run out are negative, and doubles above 2^53 are not exact. */
const isSound = ({ remaining, retryAfterMs, resetAfterMs, nextAfterMs }: QuotaState) =>
  Math.min(remaining, retryAfterMs ?? 0, resetAfterMs, nextAfterMs) >= 0 &&
  Number.isSafeInteger(remaining) &&
  Number.isSafeInteger(retryAfterMs ?? 0) &&
  Number.isSafeInteger(resetAfterMs) &&
  Number.isSafeInteger(nextAfterMs)

/** A mark, which is `+` if the cost fits, and the stored state: time, life, and one or two numbers. Without a state only the mark. */
const STATE = /^([+-])(?:(\d{1,16}):(\d{1,16}):(\d{1,16})(?::(\d{1,16}))?)?$/
function stateOf(part: string, limit: Limit, now: number, codec: Codec): QuotaState | undefined {
  const { terms } = limit
  if (hasOwnKey(terms.algorithm)) return codec.apart?.(part, limit)
  const [, mark, time, life, used, usedBefore] = STATE.exec(part) ?? []
  if (!mark) return undefined
  let state: State | undefined
  if (time) {
    const hasTwo = usedBefore !== undefined
    const end = Number(time) + Number(life)
    if (
      hasTwo !== (terms.algorithm === 'sliding-window') ||
      !Number.isSafeInteger(end) ||
      end <= now
    )
      return undefined
    const numbers = hasTwo ? [Number(used), Number(usedBefore)] : [Number(used)]
    state = { time: Number(time), end, numbers }
  }
  const answer = statedBy(limit, now, mark === '+', state)
  // The script never refuses a cost that fits into an unused quota.
  return !state && !answer.allowed && answer.retryAfterMs === 0 ? undefined : answer
}
