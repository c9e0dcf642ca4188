/** Responds as Sluice does, and decides nothing. Makes one GET for all requests of 2 ms, each with a timer of its own: the floor of batching. */
import { get } from './get.ts'
import { type Get, undecided } from './undecided.ts'

const HOLD_MS = 2
const DEADLINE_MS = 5_000

/** The requests that wait for the next GET. */
let waiting: (() => void)[] | undefined

const shared: Get = async (env, client, context) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const deadline = setTimeout(resolve, DEADLINE_MS)
  if (waiting) waiting.push(resolve)
  else {
    const own = [resolve]
    waiting = own
    const send = async () => {
      await new Promise((next) => setTimeout(next, HOLD_MS))
      waiting = undefined
      await get(env, client)
      for (const answer of own) answer()
    }
    context.waitUntil(send())
  }
  await promise
  clearTimeout(deadline)
}

export default undecided(shared)
