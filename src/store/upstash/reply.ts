/** Decodes replies of the Lua script. lua/README.md is the contract. */
import type { QuotaState } from '../../base/decision.ts'
import { algorithms, endingIn, resized, type State, withFloor } from '../algorithms/index.ts'
import type { Idempotency, Limit, StoreReply, StoreRequest } from '../store.ts'
import { penaltyOf } from './arguments.ts'

/** Decodes a reply of the script: one text for the whole call. Returns `undefined` if it does not have the form of one. */
export function decode(
  reply: unknown,
  requests: StoreRequest[],
  idempotency?: Idempotency,
): StoreReply | undefined {
  if (typeof reply !== 'string') return undefined
  const [time, ...texts] = reply.split(' ')
  const decidedAt = Number(time)
  if (!isTime(time!) || !isWhole(decidedAt)) return undefined
  const mark = idempotency && texts.shift() // of a replay
  if (idempotency && mark !== '0' && mark !== '1') return undefined
  if (texts.length !== requests.length) return undefined
  const states: QuotaState[][] = []
  for (const request of requests) {
    const answer = requestStates(texts[states.length]!, request, decidedAt)
    if (!answer) return undefined
    states.push(answer)
  }
  return { decidedAt, states, ...(mark === '1' && { replayed: true }) }
}

const isTime = (text: string) => /^\d{1,16}$/.test(text)
const isWhole = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

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
    const state = override === null ? undefined : stateOf(parts[next++]!, limit, now, override)
    const banned = penaltyOf(request, limit) ? BAN.exec(parts[ends++]!) : undefined
    if (!state || banned === null) return undefined
    const answer = banned ? withBan(state, Number(banned[1])) : state
    if (!isSound(answer)) return undefined
    states.push(answer)
  }
  return parts.length === ends + 1 && parts[ends] === '' ? states : undefined
}

/** False for numbers that no state gives: those of a state that has run out are negative, and doubles above 2^53 are not exact. */
const isSound = (state: QuotaState) => NUMBERED.every((name) => isWhole(state[name] ?? 0))
const NUMBERED = [
  'remaining',
  'retryAfterMs',
  'resetAfterMs',
  'nextAfterMs',
  'bannedForMs',
  'limit',
  'overriddenForMs',
] as const

/** A mark, which is `+` if the cost fits, and the stored state: time, life, and one or two numbers. Without a state only the mark. */
const STATE = /^([+-])(?:(\d{1,16}):(\d{1,16}):(\d{1,16})(?::(\d{1,16}))?)?$/
/** The mark, and the numbers of a limit with its own key: remaining (below 0 if more is used), retry_after, reset_after, next_after. */
const NUMBERS = /^([+-])(-?\d{1,16}),(-1|\d{1,16}),(\d{1,16}),(\d{1,16})$/
/** The rest of a ban, ms. */
const BAN = /^!(\d{1,16})$/

function plainState(part: string, limit: Limit, now: number): QuotaState | undefined {
  const { terms, floor = 0 } = limit
  const { algorithm } = terms
  if (algorithm === 'sliding-log' || algorithm === 'concurrency') {
    const [, mark, ...numbers] = NUMBERS.exec(part) ?? []
    if (!mark) return undefined
    const [left, retryAfter, resetAfterMs, nextAfterMs] = numbers.map(Number) as Four
    if ((mark === '+') !== (retryAfter === 0)) return undefined
    const retryAfterMs = retryAfter < 0 ? null : retryAfter
    const remaining = Math.max(0, left)
    const answer = { allowed: mark === '+', remaining, retryAfterMs, resetAfterMs, nextAfterMs }
    return floor ? { ...answer, reserved: Math.max(0, Math.min(floor, left + floor)) } : answer
  }
  const [, mark, time, life, ...numbers] = STATE.exec(part) ?? []
  if (!mark) return undefined
  const decide = algorithms[algorithm]
  let state: State | undefined
  if (time) {
    const values = numbers.filter((number) => number !== undefined).map(Number)
    const end = Number(time) + Number(life)
    if (values.length !== (algorithm === 'sliding-window' ? 2 : 1)) return undefined
    if (!isWhole(end) || end <= now) return undefined
    state = { time: Number(time), end, numbers: values }
  }
  const smaller = withFloor(algorithm, terms, floor)
  /** The numbers for a cost, without a charge. */
  const peek = (cost: number) => {
    const outcome = decide(now, smaller, cost, state)
    return state ? endingIn(state.end! - now, outcome) : outcome
  }
  const { remaining, resetAfterMs, nextAfterMs } = peek(0)
  const allowed = mark === '+'
  const retryAfterMs = allowed ? 0 : peek(limit.cost).retryAfterMs
  // The script never refuses a cost that fits into an unused quota.
  if (!state && !allowed && retryAfterMs === 0) return undefined
  const answer = { allowed, remaining, retryAfterMs, resetAfterMs, nextAfterMs }
  return floor
    ? { ...answer, reserved: decide(now, terms, 0, state).remaining - remaining }
    : answer
}

/** The limit of an operator in units and the rest of its life in ms, or nothing. */
const OVERRIDE = /^=(?:([1-9]\d{0,15}):(\d{1,16}))?$/

/** @param override the match of OVERRIDE, for a limit that an operator may have set */
function stateOf(
  part: string,
  limit: Limit,
  now: number,
  [, units, rest]: string[] = [],
): QuotaState | undefined {
  if (!units) return plainState(part, limit, now)
  const state = plainState(part, resized(limit, Number(units)), now)
  return state && { ...state, limit: Number(units), overriddenForMs: Number(rest) }
}

type Four = [number, number, number, number]

/** A ban refuses the limit, and the longer wait applies. */
function withBan(state: QuotaState, bannedForMs: number): QuotaState {
  if (bannedForMs === 0) return state
  const { retryAfterMs } = state
  const wait = retryAfterMs === null ? null : Math.max(retryAfterMs, bannedForMs)
  return { ...state, allowed: false, retryAfterMs: wait, bannedForMs }
}
