/** The playground has no Redis. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { memoryStore } from '../../site/playground/engine/memory-store.ts'
import type { OwnStore } from '../../src/core/base/commands.ts'
import type { Store, StoreRequest } from '../../src/core/connection/store.ts'
import { anyLimits } from '../support/any-limits.ts'
import { policyOf } from '../support/ask.ts'
import { completeRequests } from '../support/complete-limit.ts'
import { property } from '../support/law.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

// Use a separate Redis: the test counts all of its commands.
delete process.env.REDIS_URL
const { commands } = useServer()

/** No window ends during the test. */
const MONTH = 30 * 86_400_000
const penalty = { after: 2, withinMs: MONTH, banMs: MONTH, maxMs: MONTH }
const terms = (['fixed-window', 'sliding-window', 'token-bucket'] as const).flatMap((algorithm) => {
  const month = policyOf({ tag: algorithm, algorithm, limit: 3, burst: 3, windowMs: MONTH })
  return [month, { ...month, tag: `${algorithm}-banned`, penalty }]
})
const requestOf = (...modes: ('take' | 'follow' | 'refund')[]) =>
  fc.record({
    mode: fc.constantFrom(...modes),
    limits: anyLimits(terms),
  })

/** No request returns what an earlier one of the same call has taken. */
const call = fc.oneof(
  fc.array(requestOf('take', 'follow'), { minLength: 1, maxLength: 3 }),
  fc.tuple(requestOf('refund')),
)

property(
  'The bill of the playground is that of Redis, for windows, buckets and penalties.',
  fc.array(call, { minLength: 1, maxLength: 6 }),
  async (calls) => {
    const bill = { calls: 0, commands: 0 }
    const store = (memoryStore(bill, false).own as OwnStore<Store>).create({}, { batching: false })
    const prefix = newSubject()
    let expected = 0
    for (const call of calls) {
      const named = call.map(({ mode, limits }) => ({
        mode,
        limits: limits.map((one) => ({ ...one, subject: `${prefix}-${one.subject}` })),
      }))
      for (const count of Object.values(await commands(named))) expected += count
      await store.decide(completeRequests(named, Date.now()) as StoreRequest[])
    }
    expect(bill).toEqual({ calls: calls.length, commands: expected })
  },
  40,
  1,
)
