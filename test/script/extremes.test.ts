import { expect, test } from 'vitest'
import { Model, type ModelRequest } from '../model/model.ts'
import { policyOf, start } from '../support/ask.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { algorithms, type Counting } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const day = 86_400_000

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

/** What only a fixed window counts. */
const budgets: typeof sizes = [
  ['ten million tokens per 31 days', 1e7, 31 * day, 1],
  ['100 GB per 31 days', 1e11, 31 * day, 1],
  ['the largest limit per 31 days', 2 ** 53 - 1, 31 * day, 1],
  ['the largest limit in the longest window', 2 ** 53 - 1, 2 ** 51, 1],
]

const small = sizes.filter(([, limit]) => limit <= 1000)
const sizesOf = (algorithm: Counting) =>
  algorithm === 'sliding-log'
    ? small
    : algorithm === 'fixed-window'
      ? [...sizes, ...budgets]
      : sizes
const cases = algorithms.flatMap((algorithm) =>
  sizesOf(algorithm).map(
    ([claim, limit, windowMs, burst]) => [algorithm, claim, { limit, windowMs, burst }] as const,
  ),
)

test.each(cases)(
  '%s: All numbers are those of the oracle, which has arbitrary precision, for %s.',
  async (algorithm, _, size) => {
    const terms = policyOf({ algorithm, ...size })
    const subject = newSubject()
    const capacity = capacityOf(terms)
    const of = (mode: ModelRequest['mode'], cost: number): ModelRequest => ({
      mode,
      limits: [{ subject, terms, cost }],
    })
    const requests = [
      of('take', 0),
      of('peek', capacity),
      of('take', capacity),
      of('take', 1),
      of('peek', Math.ceil(capacity / 2)),
      of('take', Math.min(capacity + 1, 2 ** 53 - 1)),
      of('refund', Math.floor(capacity / 3)),
      of('take', 2 ** 51),
      ...(algorithm === 'sliding-log' ? [] : [of('debt', 2 ** 53 - 1), of('refund', capacity)]),
    ]
    const { windowMs } = terms
    const model = new Model()
    for (const wait of [0, 1, windowMs / 2, windowMs - 1, windowMs, windowMs + 1, 1.5 * windowMs]) {
      const now = start + Math.floor(wait)
      if (now > 2 ** 51) break
      expect(await server.decide(requests, now)).toEqual(model.decide(requests, now))
    }
  },
)

const names: [claim: string, name: string][] = [
  ['2 KB', 'x'.repeat(2048)],
  ['special characters', '\u0000\r\n{}:;%$ "ü\u{1f600}'],
  ['text that looks like the key of a log', '}:log:t'],
]

test.each(algorithms.flatMap((algorithm) => names.map((name) => [algorithm, ...name] as const)))(
  '%s: A subject of %s has a separate quota.',
  async (algorithm, _, name) => {
    const terms = policyOf({ algorithm, limit: 1, burst: 1 })
    const take = (subject: string): ModelRequest => ({
      mode: 'take',
      limits: [{ subject, terms, cost: 1 }],
    })
    const subject = `${newSubject()}${name}`
    const { states } = await server.decide(
      [take(subject), take(`${subject} `), take(subject)],
      start,
    )
    expect(states.map(([state]) => state!.allowed)).toEqual([true, true, false])
  },
)
