import { isUsed } from '../../core/config/feature.ts'
import { behind, inLine, ticketOf } from '../../core/connection/line.ts'
import { check, isWhole } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { line as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'
import { createRoom } from './room.ts'
import { createWaiting } from './wait.ts'

/** The units of earlier tickets, and the time until the turn in ms, or -1 if the cost never fits. */
const PLACE = /^=(\d{1,16}):(-1|\d{1,16})$/

/** The places of requests in lines: each precedes its limit, and the reply has them before the states. */
export const lines: ScriptPart = {
  text,
  line: {
    write(request, { terms: { tag } }, place) {
      const { id, leftMs, waitedMs, isFull } = ticketOf(request)
      check(/^[A-Za-z0-9]{1,32}$/.test(id), place, 'id of a ticket')
      check(isWhole(leftMs, 0) && isWhole(waitedMs, 0), place, 'wait')
      return `;${tag}-turn:line,${leftMs},${waitedMs},${id},${isFull ? 1 : 0}`
    },
    read(part, limit, stateOf) {
      const [, ahead, turn] = PLACE.exec(part) ?? []
      if (!ahead) return undefined
      const state = stateOf(behind(limit, Number(ahead)))
      return state && inLine(limit, state, turn === '-1' ? null : Number(turn))
    },
  },
}

export const MAX_WAITING = 1_000

export const compileFor =
  (maxWaiting: number): Feature['compile'] =>
  ({ config }) =>
    isUsed(config, ({ wait }) => wait)
      ? { lua: [lines], waiting: createWaiting(createRoom(maxWaiting)) }
      : {}

export const turns = compileFor(MAX_WAITING)
