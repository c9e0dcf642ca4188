import { isDeepStrictEqual } from 'node:util'
import type { StoreReply } from '../../src/store/store.ts'
import { Model, type ModelRequest } from '../model/model.ts'

/** One call as its caller saw it: sent, answered (by a clock that only moves forward), asked, told. */
export interface Call {
  sent: number
  answered: number
  requests: ModelRequest[]
  reply: StoreReply
}

/** A search that takes more steps than this is given up: some seconds on a busy machine. */
const MAX_STEPS = 10_000

/** Neither explained nor refuted: too many calls of the same moment whose order does not show. */
export class Undecided extends Error {}

/**
 * Whether one order of the calls explains them all (linearizability: Herlihy and Wing, 1990): each call takes effect at one
 * instant between its being sent and answered, the store's clock never runs back in that order, and every number of
 * every reply is what the oracle says there. The search is Wing and Gong's, with hopeless positions remembered (Lowe, 2017).
 * @returns `undefined`, or the longest order found before none of the rest fitted
 * @throws {Undecided}
 */
export function unexplained(history: Call[]): Call[] | undefined {
  const calls = history.toSorted((a, b) => a.reply.decidedAt - b.reply.decidedAt || a.sent - b.sent)
  const hopeless = new Set<string>()
  let longest: Call[] = []
  let steps = 0

  function explain(order: Call[], rest: Call[], model: Model): boolean {
    if (order.length > longest.length) longest = order
    if (rest.length === 0) return true
    if (++steps > MAX_STEPS) throw new Undecided(`after ${MAX_STEPS} steps`)
    const sameTime = rest.filter(({ reply }) => reply.decidedAt === rest[0]!.reply.decidedAt)
    const position = `${rest.length} ${sameTime.map((call) => calls.indexOf(call))} ${spell(model)}`
    if (hopeless.has(position)) return false

    // Nobody may go before one that was answered before he was sent.
    const firstAnswer = Math.min(...rest.map(({ answered }) => answered))
    const fitting = sameTime
      .filter(({ sent }) => sent <= firstAnswer)
      .map((call) => ({ call, after: next(model, call) }))
      .filter(({ after }) => after !== undefined)
    // One that changes nothing wherever it stands can only be helped by going first: nothing else need be tried then.
    const idle = fitting.find(({ call }) => changesNothing(call))
    for (const { call, after } of idle ? [idle] : fitting) {
      const others = rest.filter((other) => other !== call)
      if (explain([...order, call], others, after!)) return true
    }
    hopeless.add(position)
    return false
  }
  return explain([], calls, new Model()) ? undefined : longest
}

/** By its own answer: peeks, refusals, and takes of nothing, by `take` or `follow`. */
const changesNothing = ({ requests, reply }: Call) =>
  requests.every(({ mode, limits }, index) => {
    const refused = reply.states[index]!.some(({ allowed }) => !allowed)
    const idle = refused || limits.every(({ cost }) => cost === 0)
    return mode === 'peek' || ((mode === 'take' || mode === 'follow') && idle)
  })

/** The model after a call, if it says of the call what the store said. */
function next(model: Model, { requests, reply }: Call): Model | undefined {
  const after = new Model()
  for (const [key, value] of model.keys) after.keys.set(key, value)
  const said = after.decide(requests, reply.decidedAt)
  return isDeepStrictEqual(numbers(said), numbers(reply)) ? after : undefined
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
