import { expect, test } from 'vitest'
import { Model, type ModelPolicy, type ModelRequest } from '../model/model.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { algorithms } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const day = 86_400_000
const start = 1_789_000_000_000

/** Checks that the script replies like the oracle, which calculates with arbitrary precision. */
async function expectOracleReplies(story: { requests: ModelRequest[]; now: number }[]) {
  const model = new Model()
  for (const { requests, now } of story) {
    expect(await server.decide(requests, now)).toEqual(model.decide(requests, now))
  }
}

const sizes: [claim: string, limit: number, windowMs: number, burst: number][] = [
  ['a limit of 1', 1, 1000, 1],
  ['a limit of 1 per millisecond', 1, 1, 1],
  ['a limit of 1 per 31 days', 1, 31 * day, 1],
  ['the largest limit per 31 days', Math.floor(2 ** 53 / 3 / (31 * day)), 31 * day, 1],
  ['a million per 31 days', 1e6, 31 * day, 1e6],
  ['the largest limit with the largest burst', 2 ** 51 - 1, 1, 2 ** 51 - 1],
  ['the longest window', 1, 2 ** 51, 1],
  ['a million per day with a burst of a million', 1e6, day, 1e6],
  ['numbers without a common divisor', 999_983, 86_399_999, 999_979],
]

const small = sizes.filter(([, limit]) => limit <= 1000)
const cases = algorithms.flatMap((algorithm) =>
  (algorithm === 'sliding-log' ? small : sizes).map(
    ([claim, limit, windowMs, burst]) => [algorithm, claim, { limit, windowMs, burst }] as const,
  ),
)

test.each(cases)('%s: All numbers are exact for %s.', async (algorithm, _, terms) => {
  const policy: ModelPolicy = { tag: 't', algorithm, ...terms, align: 'first-request' }
  const subject = newSubject()
  const capacity = capacityOf(policy)
  const of = (mode: ModelRequest['mode'], cost: number): ModelRequest => ({
    mode,
    limits: [{ subject, terms: policy, cost }],
  })
  const { windowMs } = policy
  const moments = [0, 1, windowMs / 2, windowMs - 1, windowMs, windowMs + 1, 1.5 * windowMs]
    .map((wait) => start + Math.floor(wait))
    .filter((now) => now <= 2 ** 51)
  await expectOracleReplies(
    moments.map((now) => ({
      now,
      requests: [
        of('take', 0),
        of('peek', capacity),
        of('take', capacity),
        of('take', 1),
        of('peek', Math.ceil(capacity / 2)),
        of('take', capacity + 1),
        of('refund', Math.floor(capacity / 3)),
        of('take', 2 ** 51),
      ],
    })),
  )
})

const changes: [claim: string, before: Partial<ModelPolicy>, after: Partial<ModelPolicy>][] = [
  ['lowered', { limit: 100, burst: 100 }, { limit: 3, burst: 3 }],
  ['raised', { limit: 3, burst: 3 }, { limit: 100, burst: 100 }],
  ['raised beyond what a double holds', { limit: 1, burst: 1 }, { limit: 2 ** 41, burst: 2 ** 41 }],
]

test.each(
  algorithms
    .filter((name) => name !== 'sliding-log')
    .flatMap((name) => changes.map((change) => [name, ...change] as const)),
)('%s: A limit that was %s applies to the live state immediately.', async (algorithm, _, a, b) => {
  const terms = { tag: 't', windowMs: 1000, align: 'first-request', algorithm } as const
  const before = { ...terms, limit: 1, burst: 1, ...a }
  const after = { ...before, ...b }
  const subject = newSubject()
  const of = (policy: ModelPolicy, mode: ModelRequest['mode'], cost: number): ModelRequest => ({
    mode,
    limits: [{ subject, terms: policy, cost }],
  })
  await expectOracleReplies([
    { now: start, requests: [of(before, 'take', before.limit)] },
    { now: start + 1, requests: [of(after, 'peek', 1), of(after, 'take', 1)] },
    { now: start + 500, requests: [of(after, 'refund', 1), of(after, 'take', 2)] },
    // The units taken under the old terms have run out, so the client is not locked out.
    { now: start + 3000, requests: [of(after, 'take', after.limit)] },
  ])
})

const names: [claim: string, name: string][] = [
  ['2 KB', 'x'.repeat(2048)],
  ['special characters', '\u0000\r\n{}:;%$ "ü\u{1f600}'],
  ['text that looks like the key of a log', '}:log:t'],
]

test.each(algorithms.flatMap((algorithm) => names.map((name) => [algorithm, ...name] as const)))(
  '%s: A subject of %s has a separate quota.',
  async (algorithm, _, name) => {
    const policy: ModelPolicy = {
      tag: 't',
      algorithm,
      limit: 1,
      windowMs: 1000,
      burst: 1,
      align: 'clock',
    }
    const take = (subject: string): ModelRequest => ({
      mode: 'take',
      limits: [{ subject, terms: policy, cost: 1 }],
    })
    const subject = `${newSubject()}${name}`
    const { states } = await server.decide(
      [take(subject), take(`${subject} `), take(subject)],
      start,
    )
    expect(states.map(([state]) => state!.allowed)).toEqual([true, true, false])
  },
)
