import { expect } from 'vitest'
import { keyOf } from '../model.ts'
import { fullLaw } from './law.ts'
import { play, tell } from './play.ts'
import { useServer } from './server.ts'
import { clock, predictStates, read } from './stored.ts'

const server = useServer()

fullLaw('answers and stores what the oracle says, to the last number', async (plan) => {
  const { calls, replies, stored: predictions } = play(plan)
  const answers = await Promise.all(
    calls.map(async ({ now, requests }) => {
      const keys = [...new Set(requests.flatMap(({ rows }) => rows.map(keyOf)))]
      const [from, reply, stored, to] = await Promise.all([
        clock(server),
        server.decide(requests, now),
        Promise.all(keys.map((key) => read(server, key))),
        clock(server),
      ])
      return { from, reply, keys, stored, to }
    }),
  )
  answers.forEach(({ from, reply, keys, stored, to }, index) => {
    const story = tell(calls.slice(0, index + 1))
    expect(reply, story).toEqual(replies[index])
    keys.forEach((key, k) => {
      const { states, expires } = stored[k]!
      const predicted = predictions[index]!.get(key)
      expect(states, story).toEqual(predictStates(key, predicted))
      if (!predicted || predicted === predictions[index - 1]?.get(key)) return
      expect(expires - predicted.px, story).toBeGreaterThanOrEqual(from)
      expect(expires - predicted.px, story).toBeLessThanOrEqual(to)
    })
  })
})
