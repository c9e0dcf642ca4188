/** The scripts of `sluice/shards` on a stock Redis, which refuses Upstash's flag. */

import { moveKey, receiptOf } from '../../src/shards/move/places.ts'
import * as scripts from '../../src/shards/move/script-text.ts'
import { type Server, stockScript } from './server.ts'

const stock = (script: string) => script.replace(/^#!lua[^\n]*\n/, '')
const guarded = scripts.guard + stockScript

export const MOVE = 'a,b>a,b,c'

/** One Redis that is the old and the new shard at the same time. Its tests use other keys for each. */
export function moveScripts({ send }: Server) {
  const evaluate = (script: string, keys: string[], args: unknown[]) =>
    send('EVAL', stock(script), `${keys.length}`, ...keys, ...args.map(String)).catch(
      ({ message }: Error) => message,
    )
  const arriveAll = (values: [key: string, value: [number, string]][]) =>
    evaluate(
      scripts.arrive,
      values.flatMap(([key]) => [key, receiptOf(key)]),
      values.flatMap(([, value]) => value),
    )
  const settleAll = (keys: string[], mark: string) =>
    evaluate(
      scripts.settle,
      keys,
      keys.map(() => mark),
    )
  return {
    arriveAll,
    settleAll,
    begin: (name = MOVE) => send('SET', moveKey(), name),
    depart: async (...keys: string[]) => {
      const reply = await evaluate(scripts.depart, [moveKey(), ...keys], [MOVE])
      return Array.isArray(reply)
        ? keys.map((_, index) => [reply[2 * index], reply[2 * index + 1]] as [number, string])
        : [[0, String(reply)] as [number, string]]
    },
    arrive: (key: string, value: [number, string]) => arriveAll([[key, value]]),
    settle: (key: string, mark: string) => settleAll([key], mark),
    /** Calls the script with the guard, for a key that moves, or for one that stays. */
    call: (keys: string[], args: string[], moves = true) =>
      evaluate(guarded, moves ? [...keys, moveKey()] : keys, [...args, moves ? MOVE : '']),
  }
}
