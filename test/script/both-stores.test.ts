/** One schedule on Redis and on a Durable Object: a user who changes the store changes no decision. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Idempotency, StoreReply } from '../../src/core/connection/store.ts'
import { law, lawRuns } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import type { Schedule, Shape } from '../support/schedules.ts'
import { objectsServer, type Server, useServer } from '../support/server.ts'
import { expectEqual } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const redis = useServer()
const objects = objectsServer()

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
  server: Server,
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
  const [one, other] = await Promise.all([outcomes(redis, sent), outcomes(objects, sent)])
  one.forEach((reply, index) => {
    const story = formatCalls(calls.slice(0, index + 1))
    expectEqual(other[index], reply, `${story}\nwith ${JSON.stringify(names)}`)
  })
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
  'Redis and a Durable Object give equal decisions, remaining units and waits, whatever is asked of them',
  areEqual,
  { single: everything, mixed: { ...everything, subjects: 1 } },
  Math.ceil(lawRuns / 8),
)
