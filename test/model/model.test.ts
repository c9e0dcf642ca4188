import fc from 'fast-check'
import { expect, test } from 'vitest'
import { policyOf } from '../support/ask.ts'
import { completeLimit } from '../support/complete-limit.ts'
import { isLong } from '../support/long.ts'
import { capacityOf, runOnOracle } from '../support/run-on-oracle.ts'
import { schedule } from '../support/schedules.ts'
import { LimitModel } from './limit.ts'
import { Model, type ModelLimit, type ModelPolicy, spell } from './model.ts'

const of = (algorithm: ModelPolicy['algorithm'], limit: number) =>
  policyOf({ tag: 'a', algorithm, limit, burst: 5 })
const fixed = of('fixed-window', 3)
const sliding = of('sliding-window', 10)
const log = of('sliding-log', 3)
const bucket = of('token-bucket', 10)

type Answer = [
  allowed: number,
  remaining: number,
  retry: number | null,
  reset: number,
  next: number,
]
type Step = [
  now: number,
  mode: 'take' | 'peek' | 'refund',
  cost: number,
  answer: Answer,
  stored?: string,
]

/** All numbers were calculated by hand from docs/explanation/algorithms.md. */
const stories: [claim: string, policy: ModelPolicy, steps: (Step | ModelPolicy)[]][] = [
  [
    'A fixed window opens with the first charge, and all its units return at its end.',
    fixed,
    [
      [10_500, 'peek', 3, [1, 3, 0, 0, 0]],
      [10_500, 'take', 2, [1, 1, 0, 1000, 1000], 'a:10500:1000:2'],
      [10_900, 'take', 2, [0, 1, 600, 600, 600], 'a:10500:1000:2'],
      [10_900, 'take', 0, [1, 1, 0, 600, 600], 'a:10500:1000:2'],
      [10_900, 'take', 1, [1, 0, 0, 600, 600], 'a:10500:1000:3'],
      [10_900, 'peek', 4, [0, 0, null, 600, 600]],
      [11_499, 'take', 1, [0, 0, 1, 1, 1], 'a:10500:1000:3'],
      [11_500, 'take', 3, [1, 0, 0, 1000, 1000], 'a:11500:1000:3'],
    ],
  ],
  [
    'A fixed window by the clock opens at a multiple of the window.',
    { ...fixed, align: 'clock' },
    [
      [10_500, 'take', 3, [1, 0, 0, 500, 500], 'a:10000:1000:3'],
      [10_999, 'take', 1, [0, 0, 1, 1, 1]],
      [11_000, 'take', 1, [1, 2, 0, 1000, 1000], 'a:11000:1000:1'],
    ],
  ],
  [
    'A refund lowers the count of an open fixed window, and the state is removed when its count is 0.',
    fixed,
    [
      [10_500, 'take', 3, [1, 0, 0, 1000, 1000]],
      [10_700, 'refund', 2, [1, 2, 0, 800, 800], 'a:10500:1000:1'],
      [10_700, 'refund', 9, [1, 3, 0, 0, 0], ''],
      [10_800, 'refund', 1, [1, 3, 0, 0, 0], ''],
    ],
  ],
  [
    'A fixed window that starts later than now keeps its end, and all waits count from now.',
    fixed,
    [
      [10_500, 'take', 2, [1, 1, 0, 1000, 1000]],
      [10_400, 'take', 2, [0, 1, 1100, 1100, 1100]],
      [10_400, 'take', 1, [1, 0, 0, 1100, 1100], 'a:10500:1000:3'],
    ],
  ],
  [
    'A lowered limit applies to a live window immediately, and a refund lowers the stored count.',
    fixed,
    [
      [10_500, 'take', 3, [1, 0, 0, 1000, 1000]],
      { ...fixed, limit: 2 },
      [10_600, 'take', 1, [0, 0, 900, 900, 900]],
      [10_600, 'refund', 2, [1, 1, 0, 900, 900], 'a:10500:1000:1'],
      { ...fixed, limit: 5 },
      [10_600, 'peek', 5, [0, 4, 900, 900, 900]],
    ],
  ],
  [
    'A sliding window weights the count of the previous window by its overlap.',
    sliding,
    [
      // The window is full. In the next window the ten units weigh 10 × left, so one unit fits when 900 ms are left.
      [10_000, 'take', 10, [1, 0, 0, 2000, 1100], 'a:10000:2000:10:0'],
      [11_099, 'take', 1, [0, 0, 1, 901, 1]],
      [11_500, 'peek', 5, [1, 5, 0, 500, 100]],
      [11_500, 'take', 3, [1, 2, 0, 1500, 100], 'a:11000:2000:3:10'],
      [11_500, 'take', 5, [0, 2, 300, 1500, 100]],
      // Nine units fit only in the next window, where 3 × left ≤ 1000: when 333 ms are left.
      [11_500, 'take', 9, [0, 2, 1167, 1500, 100]],
      [11_500, 'refund', 7, [1, 5, 0, 500, 100], 'a:11000:1000:0:10'],
      [11_500, 'refund', 1, [1, 5, 0, 500, 100], 'a:11000:1000:0:10'],
      [11_999, 'peek', 10, [0, 9, 1, 1, 1]],
      [12_000, 'peek', 10, [1, 10, 0, 0, 0]],
    ],
  ],
  [
    'A sliding window that starts later than now is read at its start.',
    sliding,
    [
      [11_000, 'take', 4, [1, 6, 0, 2000, 1250]],
      [10_900, 'peek', 7, [0, 6, 1350, 2100, 1350]],
    ],
  ],
  [
    'A sliding log returns each unit one window after it was taken.',
    log,
    [
      [10_000, 'take', 1, [1, 2, 0, 1000, 1000], 'a:10000:1000:10000'],
      [10_400, 'take', 2, [1, 0, 0, 1000, 600], 'a:10400:1000:10000:10400:10400'],
      [10_500, 'take', 1, [0, 0, 500, 900, 500]],
      [10_500, 'take', 2, [0, 0, 900, 900, 500]],
      [11_000, 'take', 1, [1, 0, 0, 1000, 400], 'a:11000:1000:10400:10400:11000'],
      [11_100, 'refund', 2, [1, 2, 0, 300, 300], 'a:10400:1000:10400'],
    ],
  ],
  [
    'A token bucket refills continuously.',
    bucket,
    [
      [10_000, 'take', 5, [1, 0, 0, 500, 100], 'a:10000:500:5000'],
      [10_250, 'take', 3, [0, 2, 50, 250, 50]],
      [10_250, 'take', 2, [1, 0, 0, 450, 50], 'a:10250:450:4500'],
      [10_250, 'take', 6, [0, 0, null, 450, 50]],
      [10_250, 'refund', 1, [1, 1, 0, 350, 50], 'a:10250:350:3500'],
      [10_250, 'refund', 4, [1, 5, 0, 0, 0], ''],
    ],
  ],
  [
    'A token bucket rounds its waits up to the millisecond in which the unit is available.',
    { ...bucket, limit: 3, burst: 2 },
    [
      [10_000, 'take', 2, [1, 0, 0, 667, 334], 'a:10000:667:2000'],
      [10_333, 'take', 1, [0, 0, 1, 334, 1]],
      [10_334, 'take', 1, [1, 0, 0, 666, 333], 'a:10334:666:1998'],
    ],
  ],
  [
    'A token bucket is read no earlier than its stored time.',
    bucket,
    [
      [10_000, 'take', 5, [1, 0, 0, 500, 100]],
      [9_990, 'take', 1, [0, 0, 110, 510, 110]],
      [9_990, 'refund', 1, [1, 1, 0, 410, 110], 'a:10000:400:4000'],
    ],
  ],
  [
    'Neither a slower refill nor a refund makes a live token bucket wait beyond its run-out.',
    bucket,
    [
      [10_000, 'take', 5, [1, 0, 0, 500, 100]],
      { ...bucket, limit: 1 },
      [10_250, 'peek', 1, [0, 0, 250, 250, 250]],
      [10_250, 'refund', 1, [1, 1, 0, 250, 250], 'a:10250:250:3750'],
      [10_500, 'peek', 5, [1, 5, 0, 0, 0]],
      [10_250, 'take', 1, [1, 0, 0, 4750, 750], 'a:10250:4750:4750'],
    ],
  ],
  [
    'The missing parts of a token bucket are the same under two plans, and its run-out depends on the plan of the last change.',
    { ...bucket, burst: 10 },
    [
      [10_000, 'take', 3, [1, 7, 0, 300, 100], 'a:10000:300:3000'],
      { ...bucket, limit: 5 },
      [10_000, 'take', 1, [1, 1, 0, 800, 200], 'a:10000:800:4000'],
      [10_000, 'refund', 1, [1, 2, 0, 600, 200], 'a:10000:600:3000'],
      { ...bucket, burst: 10 },
      [10_200, 'peek', 10, [0, 9, 100, 100, 100]],
      [10_200, 'take', 8, [1, 1, 0, 900, 100], 'a:10200:900:9000'],
      { ...bucket, limit: 5 },
      [10_200, 'peek', 1, [0, 0, 900, 900, 900]],
    ],
  ],
]

test.each(stories)('%s', (_, policy, steps) => {
  const model = new Model()
  let current = policy
  for (const step of steps) {
    if (!Array.isArray(step)) {
      current = step
      continue
    }
    const [now, mode, cost, answer, stored] = step
    const limits = [{ subject: 's', terms: current, cost }]
    const row = model.decide([{ mode, limits }], now).states[0]![0]!
    const actual = [
      +row.allowed,
      row.remaining,
      row.retryAfterMs,
      row.resetAfterMs,
      row.nextAfterMs,
    ]
    expect(actual, `${mode} ${cost} at ${now}`).toEqual(answer)
    if (stored !== undefined) expect(stateOf(model)).toBe(stored)
  }
})

function stateOf(model: Model): string {
  return [...model.keys.values()]
    .flatMap(({ states }) => [...states].map(([tag, state]) => spell(tag, state)))
    .join(';')
}

const row = (terms: ModelPolicy, cost: number, subject = 's'): ModelLimit => ({
  subject,
  terms,
  cost,
})
const [a, b] = [fixed, { ...bucket, tag: 'b' }]

test('The limits of a request are charged together or not at all.', () => {
  const model = new Model()
  const request = { mode: 'take' as const, limits: [row(a, 2), row(b, 1), row(a, 1, 'other')] }
  expect(model.decide([request], 10_000).states[0]!.map((r) => r.remaining)).toEqual([1, 4, 2])
  expect(model.decide([request], 10_000).states[0]).toMatchObject([
    { allowed: false, remaining: 1, retryAfterMs: 1000 },
    { allowed: true, remaining: 4, retryAfterMs: 0 },
    { allowed: true, remaining: 2, retryAfterMs: 0 },
  ])
})

test('A write copies live states, drops states that have run out, and sets the TTL to the longest run-out plus a minute.', () => {
  const model = new Model()
  model.decide([{ mode: 'take', limits: [row(b, 1)] }], 10_000)
  model.decide([{ mode: 'take', limits: [row(a, 1)] }], 10_050)
  expect(stateOf(model)).toBe('b:10000:100:1000;a:10050:1000:1')
  expect([...model.keys]).toMatchObject([['sluice:1:{s}', { px: 61_000 }]])
  model.decide([{ mode: 'take', limits: [row(a, 1)] }], 10_100)
  expect(stateOf(model)).toBe('a:10050:1000:2')
  expect([...model.keys]).toMatchObject([['sluice:1:{s}', { px: 60_950 }]])
  model.decide([{ mode: 'refund', limits: [row(a, 2)] }], 10_100)
  expect([...model.keys]).toEqual([])
})

const names = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'calendar'] as const

// The oracle finds its numbers by bisection. That is correct only if a larger cost never fits earlier, and a longer wait
// never fits less. So this test tries every cost and every millisecond.
test.each(names)(
  '%s: The search of the model finds the same numbers as trying every value.',
  (name) => {
    fc.assert(
      fc.property(schedule([name], { small: true }), (plan) => {
        const model = new Model()
        const { calls, policies } = runOnOracle(plan, model)
        const now = BigInt(calls.at(-1)!.now)
        const limit = new LimitModel(completeLimit(row(policies[0]!, 1), Number(now)))
        const state = [...model.keys.values()][0]?.states.get('t0')
        const costs = Array.from({ length: capacityOf(policies[0]!) }, (_, index) => index + 1)
        const fits = (cost: number, wait: number) =>
          limit.fits(state, BigInt(cost), now + BigInt(wait))

        const { remaining, resetAfterMs } = limit.report(state, now)
        expect(costs.filter((cost) => fits(cost, 0))).toEqual(costs.slice(0, remaining))
        const waits = Array.from({ length: resetAfterMs + 5 }, (_, wait) => wait)
        for (const cost of costs) {
          const first = Number(limit.wait(state, BigInt(cost), now))
          expect(waits.filter((wait) => fits(cost, wait))).toEqual(waits.slice(first))
        }
      }),
      { numRuns: isLong ? 200 : 60 },
    )
  },
)
