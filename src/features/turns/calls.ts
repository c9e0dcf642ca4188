/** The calls of requests that may wait: the general script with the parts of turns. lua/README.md, "Turns", is the contract. */

import { StoreError } from '../../core/base/errors.ts'
import type { Limit, StoreRequest, StoreResult, StoreState } from '../../core/connection/store.ts'
import { callOf, joined, type Pack, repliesOf } from '../../core/connection/upstash/pack.ts'
import type { Codec } from '../../core/connection/upstash/part.ts'
import {
  generalScript,
  lua,
  waits as parts,
  places,
} from '../../core/connection/upstash/script-text.ts'
import { newScript } from '../../core/connection/upstash/sets.ts'
import type { MakeCalls } from '../../core/connection/upstash/upstash.ts'
import type { WaitingRoom } from './room.ts'
import { longestWait, mayWait, placed, waits } from './waits.ts'

/** The driver of the general script, with the parts of turns between its pieces. */
const driver = () => lua.decide.flatMap((piece, index) => [piece, parts[index] ?? ''])

/** Makes the calls with requests that may wait. */
export const waitingCalls =
  (room: WaitingRoom): MakeCalls =>
  (features, codec) => {
    const script = newScript(generalScript([...features, { text: places }], driver()))
    return (pack, now, namespace) => {
      const requests = joined(pack.lists)
      if (!requests.some(mayWait)) return undefined
      const { keys, args } = callOf(pack, now, namespace, codec)
      if (!pack.idempotency) args[0] = `3:special:${now ?? ''}`
      const first = args.length - requests.length
      const isFull = room.isFull()
      const longest = requests.map((request, index) => {
        if (!mayWait(request)) return 0
        const wait = isFull ? 0 : longestWait(request.limits)
        const marks = request.limits.map((limit) => (waits(limit) ? '+' : '-')).join('')
        args[first + index] = `take@${wait}${marks}${args[first + index]!.slice('take'.length)}`
        return wait
      })
      return {
        script,
        keys,
        args,
        repliesOf: (answer) => read(answer, pack, requests, longest, codec),
      }
    }
  }

const PLACES = /^=((?:(?:\d{1,16}|-),)*(?:\d{1,16}|-));/

/** Takes the places out of the reply to a request. `undefined` if it does not have one for each limit that waits. */
function takePlaces(text: string, limits: Limit[]) {
  const [whole, given] = PLACES.exec(text) ?? []
  const places = given?.split(',').map((place) => (place === '-' ? null : Number(place)))
  if (places?.length !== limits.filter(waits).length) return undefined
  const parts = text.slice(whole!.length).split(';')
  const first = limits.filter(({ override }) => override).length
  // A limit without a state refuses only because of its line, which the reply of the general script does not know.
  limits.forEach((limit, index) => {
    if (waits(limit) && parts[first + index] === '-') parts[first + index] = '+'
  })
  return { places, text: parts.join(';') }
}

/** Reads an answer: the reply of the general script, and before the states of each request that may wait its places. */
function read(
  answer: unknown,
  pack: Pack,
  requests: StoreRequest[],
  longest: number[],
  codec: Codec,
): StoreResult[] {
  if (typeof answer !== 'string') return repliesOf(pack, answer, codec)
  const texts = answer.split(' ')
  const first = texts.length - requests.length
  const taken = requests.map((request, index) =>
    mayWait(request) ? takePlaces(texts[first + index] ?? '', request.limits) : undefined,
  )
  taken.forEach((one, index) => {
    if (mayWait(requests[index]!)) texts[first + index] = one?.text ?? ''
  })
  let next = 0
  return repliesOf(pack, texts.join(' '), codec).map((reply, list): StoreResult => {
    const from = next
    next += pack.lists[list]!.length
    if (reply instanceof StoreError) return reply
    const states = reply.states.map((own, at): StoreState[] => {
      const given = taken[from + at]?.places
      if (!given) return own
      const wait = longest[from + at]!
      const isTaken =
        own.every(({ allowed }) => allowed) &&
        given.every((place) => place !== null && place <= reply.decidedAt + wait)
      const places = given.values()
      return own.map((state, index) => {
        const limit = requests[from + at]!.limits[index]!
        if (!waits(limit)) return state
        const place = places.next().value!
        return placed(state, limit, place, reply.decidedAt, wait, isTaken)
      })
    })
    return { ...reply, states }
  })
}
