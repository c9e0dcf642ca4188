import { isDeepStrictEqual } from 'node:util'
import type { StoreReply } from '../../src/core/connection/store.ts'
import { Model, type ModelRequest } from '../model/model.ts'

/** One call as its caller observed it. `sent` and `answered` are times of a monotonic clock. */
export interface Call {
  sent: number
  answered: number
  requests: ModelRequest[]
  reply: StoreReply
}

/** The search gives up after this number of steps: some seconds on a busy machine. */
const MAX_STEPS = 10_000

/** The search gave up: too many calls have the same time, and their replies do not reveal their order. */
export class Undecided extends Error {}

/**
 * Checks that a history is linearizable (Herlihy and Wing, 1990). Some order of the calls must satisfy three conditions:
 * each call takes effect at one instant between `sent` and `answered`, the store's clock never runs backwards, and the
 * oracle gives every number of every reply. The search is Wing and Gong's, and remembers dead ends (Lowe, 2017).
 * @returns `undefined` if the history is linearizable, otherwise the longest order that the search found
 * @throws {Undecided}
 */
export function unexplained(history: Call[]): Call[] | undefined {
  const calls = history.toSorted((a, b) => a.reply.decidedAt - b.reply.decidedAt || a.sent - b.sent)
  const deadEnds = new Set<string>()
  let longest: Call[] = []
  let steps = 0

  function explain(order: Call[], rest: Call[], model: Model): boolean {
    if (order.length > longest.length) longest = order
    if (rest.length === 0) return true
    if (++steps > MAX_STEPS) throw new Undecided(`after ${MAX_STEPS} steps`)
    const sameTime = rest.filter(({ reply }) => reply.decidedAt === rest[0]!.reply.decidedAt)
    const position = `${rest.length} ${sameTime.map((call) => calls.indexOf(call))} ${spell(model)}`
    if (deadEnds.has(position)) return false

    // A call that was sent after the answer of another call comes after it.
    const firstAnswer = Math.min(...rest.map(({ answered }) => answered))
    const fitting = sameTime
      .filter(({ sent }) => sent <= firstAnswer)
      .map((call) => ({ call, after: next(model, call) }))
      .filter(({ after }) => after !== undefined)
    // A call that changes nothing may always go first, so the search needs no other candidate.
    const idle = fitting.find(({ call }) => changesNothing(call))
    for (const { call, after } of idle ? [idle] : fitting) {
      const others = rest.filter((other) => other !== call)
      if (explain([...order, call], others, after!)) return true
    }
    deadEnds.add(position)
    return false
  }
  return explain([], calls, new Model()) ? undefined : longest
}

/** By its reply, a call changes nothing if each request is a peek, a refusal, or a take at no cost. */
const changesNothing = ({ requests, reply }: Call) =>
  requests.every(({ mode, limits }, index) => {
    const refused = reply.states[index]!.some(({ allowed }) => !allowed)
    const idle = refused || limits.every(({ cost }) => cost === 0)
    return mode === 'peek' || ((mode === 'take' || mode === 'follow') && idle)
  })

/** The model after a call, if the model gives the same reply as the store. */
function next(model: Model, { requests, reply }: Call): Model | undefined {
  const after = new Model()
  for (const [key, value] of model.keys) after.keys.set(key, value)
  const expected = after.decide(requests, reply.decidedAt)
  return isDeepStrictEqual(numbers(expected), numbers(reply)) ? after : undefined
}

const numbers = ({ states }: StoreReply) =>
  states.map((limits) =>
    limits.map((row) => [
      row.allowed,
      row.remaining,
      row.retryAfterMs,
      row.resetAfterMs,
      row.nextAfterMs,
    ]),
  )

const spell = (model: Model) =>
  JSON.stringify(
    [...model.keys].map(([key, { states }]) => [
      key,
      [...states].map(([tag, { time, numbers }]) => `${tag}:${time}:${numbers}`),
    ]),
  )
