/** One schedule on Redis, on a Durable Object and through the clients of an app: a user who changes the store changes no decision. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Idempotency, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { completeRequests } from '../support/complete-limit.ts'
import { useDatabase } from '../support/database.ts'
import { law, lawRuns } from '../support/law.ts'
import { redisClients, storeOf } from '../support/redis-clients.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import type { Schedule, Shape } from '../support/schedules.ts'
import { objectsServer, type Server, useServer } from '../support/server.ts'
import { expectEqual } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const redis = useServer()
const objects = objectsServer()
const database = useDatabase()
const servers: Pick<Server, 'decide'>[] = [objects]
beforeAll(() => {
  for (const [name, open] of Object.entries(redisClients)) {
    const { client, close } = open(database.redis.url)
    closing.push(close)
    const store = storeOf(client, 10_000, name)
    servers.push({
      decide(requests, now, once) {
        const complete = completeRequests(requests, now ?? Date.now()) as StoreRequest[]
        const options = { ...(now !== undefined && { now }), ...(once && { idempotency: once }) }
        return store.decide(complete, options)
      },
    })
  }
})
const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
})

/** What an idempotency key of a call names: nothing, a new call, or an earlier one, with the same content or with another. */
type Named = { back: number; isOther: boolean; forMs: number } | null

const randomNames = (seed: number, calls: number): Named[] =>
  fc.sample(
    fc.option(
      fc.record({
        back: fc.nat(3),
        isOther: fc.constantFrom(false, false, false, true),
        forMs: fc.constantFrom(1, 10, 60_000),
      }),
      { freq: 2 },
    ),
    { seed, numRuns: calls },
  )

/** The decisions of a store, and the calls that it refuses. */
async function outcomes(
  server: Pick<Server, 'decide'>,
  calls: [...Parameters<Server['decide']>][],
): Promise<(StoreReply | string)[]> {
  const all: (StoreReply | string)[] = []
  for (const call of calls) {
    const reply = await server
      .decide(...call)
      .catch(({ message }) => /idempotency[-:]/.exec(String(message))?.[0] ?? String(message))
    all.push(typeof reply === 'string' ? reply.replace(/[-:]/, '') : reply)
  }
  return all
}

const areEqual = async (plan: Schedule) => {
  const { calls } = runOnOracle(plan)
  const names = randomNames(plan.start, calls.length)
  const keys = calls.map(newSubject)
  const sent = calls.map(({ requests, now }, index): [...Parameters<Server['decide']>] => {
    const name = names[index]
    if (!name) return [requests, now]
    const named = Math.max(0, index - name.back)
    const content = name.isOther ? index : named
    const { forMs } = name
    const once: Idempotency = { key: keys[named]!, fingerprint: `call-${content}`, forMs }
    return [calls[content]!.requests, now, once]
  })
  const one = await outcomes(redis, sent)
  const others = await Promise.all(servers.map((server) => outcomes(server, sent)))
  for (const other of others) {
    one.forEach((reply, index) => {
      const story = formatCalls(calls.slice(0, index + 1))
      expectEqual(other[index], reply, `${story}\nwith ${JSON.stringify(names)}`)
    })
  }
  expect(one).toHaveLength(calls.length)
}

const everything: Shape = {
  penalties: true,
  operators: true,
  floors: true,
  debts: true,
  overrides: true,
  plans: 2,
}
law(
  'Redis, a Durable Object and Redis through the clients of an app give equal decisions, remaining units and waits, whatever is asked of them',
  areEqual,
  { single: everything, mixed: { ...everything, subjects: 1 } },
  Math.ceil(lawRuns / 8),
)
