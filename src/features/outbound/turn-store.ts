/** The interface of a store that gives turns, and the one on Redis. lua/README.md, "Turns", is the contract. */
import type { SendCommands } from '../../core/base/commands.ts'
import { sha1 } from '../../core/base/digest.ts'
import { StoreError } from '../../core/base/errors.ts'
import type { Limit, Store } from '../../core/connection/store.ts'
import { encode, recordOf } from '../../core/connection/upstash/script.ts'
import { refusal, toStoreError } from '../../core/connection/upstash/transport.ts'
import { slots } from '../concurrency/part.ts'
import { turnsScript } from './script-text.ts'

/** A question for a turn: all limits of one request to the other side. They have one subject. */
export interface TurnAsk {
  do: 'take' | 'peek'
  limits: Limit[]
  /** The longest time to the place, ms ≥ 0. */
  waitMs: number
  /** The longest wait of a request for a slot, ms. It lengthens the life of the slot. */
  holdMs: number
}

/** What the other side has said about its limits. */
export interface TurnReport {
  do: 'learn'
  /** The cost of each limit is the number of units that the other side has left. */
  limits: Limit[]
  /** The place of the request that was answered, ms since the epoch. */
  sentAt: number
  /** No request has a turn for so long, ms. 0 without a cooldown. */
  coolMs: number
  /** Limits that the other side has reported, by tag. */
  lowered: { tag: string; limit: number; forMs: number }[]
}

export interface Turn {
  /** The time of the answer, ms since the epoch. */
  now: number
  /** The time at which the request may be sent, ms since the epoch; `null` if its cost never fits. It is charged if `place` is within the wait. */
  place: number | null
  /** The number of slots that others must release first. Above 0 nothing is charged, and the request waits in the line for slots. */
  ahead: number
  /** The rest of a cooldown, ms. */
  coolMs: number
  /** The units that are left of each limit that counts in time. Empty if nothing was charged. */
  left: number[]
}

/** A store that gives turns. It also refunds units, charges debts and releases slots. */
export interface TurnStore extends Pick<Store, 'decide'> {
  turn(ask: TurnAsk | TurnReport): Promise<Turn>
}

/** The tag of the state that keeps the order of turns: that of the first limit, which all requests have. */
export const lineTag = (limits: readonly Limit[]) => `${limits[0]!.terms.tag}-turn`

interface Options {
  send: SendCommands
  /** The time for calls, ms since the epoch. `undefined` for the clock of Redis. */
  now: () => number | undefined
  namespace: string | undefined
  line: string
}

/** Gives turns by the script of turns on one database. */
export function redisTurns({ send, now, namespace, line }: Options): TurnStore['turn'] {
  let sha: string | undefined
  let isLoaded = false

  async function run(keys: string[], args: string[], signal?: AbortSignal): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    if (isLoaded) {
      sha ??= await sha1(turnsScript)
      const [answer] = await send([['evalsha', sha, ...rest]], signal)
      if (!('error' in answer!)) return answer!.result
      if (!answer.error.startsWith('NOSCRIPT')) throw refusal(answer.error)
    }
    const [answer] = await send([['eval', turnsScript, ...rest]], signal)
    if ('error' in answer!) throw refusal(answer.error)
    isLoaded = true
    return answer!.result
  }

  return async (ask) => {
    const { limits } = ask
    const { keys, args } = turnCall(ask, line, now(), namespace)
    const answer = await run(keys, args).catch((error) => {
      throw toStoreError(error)
    })
    const turn = decodeTurn(answer, limits.length)
    if (!turn) throw new StoreError('bad-reply')
    return turn
  }
}

/** KEYS and ARGV of one call of the script of turns. */
export function turnCall(
  ask: TurnAsk | TurnReport,
  line: string,
  now: number | undefined,
  namespace?: string,
) {
  const mode = ask.do === 'take' ? 'take' : 'peek'
  const { keys, args } = encode([{ mode, limits: ask.limits }], now, undefined, namespace, slots)
  const record = recordOf(ask.limits[0]!.subject, namespace)
  if (!keys.includes(record)) keys.push(record)
  args[0] = `3:special:${now ?? ''}`
  const isReport = ask.do === 'learn'
  const [time, hold, cool] = isReport ? [ask.sentAt, 0, ask.coolMs] : [ask.waitMs, ask.holdMs, 0]
  args.push(`${ask.do} ${keys.indexOf(record) + 1} ;${line}: ${time} ${hold} ${cool}`)
  if (isReport) {
    for (const { tag, limit, forMs } of ask.lowered) args.push(`;${tag}-limit: ${limit} ${forMs}`)
  }
  return { keys, args }
}

const TURN = /^(\d{1,16}) (-|\d{1,16}) (-?\d{1,16}) (\d{1,16}) ([\d,]*)$/

/** Decodes the reply of the script. `undefined` if it does not have the form of one. */
export function decodeTurn(answer: unknown, limits: number): Turn | undefined {
  const [, now, place, ahead, cool, left] = TURN.exec(String(answer)) ?? []
  if (now === undefined) return undefined
  const lefts = left ? left.split(',').map(Number) : []
  if (lefts.length > limits) return undefined
  return {
    now: Number(now),
    place: place === '-' ? null : Number(place),
    ahead: Math.max(0, Number(ahead)),
    coolMs: Number(cool),
    left: lefts,
  }
}
