/** Decodes replies of the Lua script. lua/README.md is the contract. */
import type { QuotaState } from '../../base/decision.ts'
import { hasOwnKey } from '../../base/own-key.ts'
import { type KeptState, resized, statedBy } from '../algorithms/index.ts'
import type { Idempotency, Limit, StoreReply, StoreRequest } from '../store.ts'
import { penaltyOf } from './arguments.ts'

/** Decodes a reply of the script: one text for the whole call. Returns `undefined` if it does not have the form of one. */
export function decode(
  reply: unknown,
  requests: StoreRequest[],
  idempotency?: Idempotency,
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
    const answer = requestStates(texts[next++]!, request, decidedAt)
    if (!answer) return undefined
    states.push(answer)
  }
  return mark === '1' ? { decidedAt, states, replayed: true } : { decidedAt, states }
}

/** The time, and from the general script the number of commands, which `bill.ts` reads. */
const TIME = /^(\d{1,16})(?::\d+)?$/

/** Decodes the reply to one request: the limits of operators, a part for each limit, the rest of each ban. Each part ends with `;`. */
function requestStates(text: string, request: StoreRequest, now: number): QuotaState[] | undefined {
  const parts = text.split(';')
  const { limits } = request
  const states: QuotaState[] = []
  let next = 0
  for (const { override } of limits) if (override) next += 1
  let ends = next + limits.length
  let overrides = 0
  for (const limit of limits) {
    const override = limit.override && OVERRIDE.exec(parts[overrides++]!)
    if (override === null) return undefined
    const part = parts[next++]!
    let state = override ? stateOf(part, limit, now, override) : plainState(part, limit, now)
    if (state && limit.penalty && penaltyOf(request, limit)) state = withBan(state, parts[ends++]!)
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
/** The mark, and the numbers of a limit with its own key: remaining (below 0 if more is used), retry_after, reset_after, next_after. */
const NUMBERS = /^([+-])(-?\d{1,16}),(-1|\d{1,16}),(\d{1,16}),(\d{1,16})$/
/** The rest of a ban, ms. */
const BAN = /^!(\d{1,16})$/

function plainState(part: string, limit: Limit, now: number): QuotaState | undefined {
  const { terms, floor = 0 } = limit
  const { algorithm } = terms
  if (hasOwnKey(algorithm)) {
    const [, mark, ...numbers] = NUMBERS.exec(part) ?? []
    if (!mark) return undefined
    const [left, retryAfter, resetAfterMs, nextAfterMs] = numbers.map(Number) as Four
    if ((mark === '+') !== (retryAfter === 0)) return undefined
    const retryAfterMs = retryAfter < 0 ? null : retryAfter
    const remaining = Math.max(0, left)
    const answer = { allowed: mark === '+', remaining, retryAfterMs, resetAfterMs, nextAfterMs }
    return floor ? { ...answer, reserved: Math.max(0, Math.min(floor, left + floor)) } : answer
  }
  const [, mark, time, life, used, usedBefore] = STATE.exec(part) ?? []
  if (!mark) return undefined
  let state: KeptState | undefined
  if (time) {
    const hasTwo = usedBefore !== undefined
    const end = Number(time) + Number(life)
    if (hasTwo !== (algorithm === 'sliding-window') || !Number.isSafeInteger(end) || end <= now)
      return undefined
    const numbers = hasTwo ? [Number(used), Number(usedBefore)] : [Number(used)]
    state = { time: Number(time), end, numbers }
  }
  const answer = statedBy(limit, now, mark === '+', state)
  // The script never refuses a cost that fits into an unused quota.
  return !state && !answer.allowed && answer.retryAfterMs === 0 ? undefined : answer
}

/** The limit of an operator in units and the rest of its life in ms, or nothing. */
const OVERRIDE = /^=(?:([1-9]\d{0,15}):(\d{1,16}))?$/

/** @param override the match of OVERRIDE */
function stateOf(
  part: string,
  limit: Limit,
  now: number,
  [, units, rest]: string[],
): QuotaState | undefined {
  if (!units) return plainState(part, limit, now)
  const [size, overriddenForMs] = [Number(units), Number(rest)]
  const state = plainState(part, resized(limit, size), now)
  if (!state || !Number.isSafeInteger(size) || !Number.isSafeInteger(overriddenForMs))
    return undefined
  return { ...state, limit: size, overriddenForMs }
}

type Four = [number, number, number, number]

/** A ban refuses the limit, and the longer wait applies. */
function withBan(state: QuotaState, part: string): QuotaState | undefined {
  const ban = BAN.exec(part)
  const bannedForMs = Number(ban?.[1])
  if (!Number.isSafeInteger(bannedForMs)) return undefined
  if (bannedForMs === 0) return state
  const { retryAfterMs } = state
  const wait = retryAfterMs === null ? null : Math.max(retryAfterMs, bannedForMs)
  return { ...state, allowed: false, retryAfterMs: wait, bannedForMs }
}
