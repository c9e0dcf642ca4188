import fc from 'fast-check'
import type { AlgorithmName, ModelPolicy, ModelRequest } from '../model.ts'

/**
 * Random schedules. Waits and costs are partly relative (one millisecond before the retry, one unit
 * more than remains), since that is where limiters break; `play.ts` makes numbers of them.
 */
export interface Schedule {
  start: number
  policies: ModelPolicy[]
  steps: Step[]
}

export interface Step {
  wait: Wait
  /** Whether a wait below 0 is none. */
  forward?: boolean
  /** A new limit and burst for a policy, from this step on. */
  change: { policy: number; limit: number; burst: number } | null
  /** One call. */
  requests: Ask[]
}

export interface Ask {
  mode: ModelRequest['mode']
  rows: { policy: number; subject: number; cost: Cost }[]
  /** How many steps ago the units given back were taken; null: no receipt. */
  receipt: number | null
}

export type Wait =
  | { ms: number }
  /** Eighths of the first policy's window. */
  | { eighths: number; plus: number }
  /** What the last row of the call before said. */
  | { until: 'retryAfterMs' | 'resetAfterMs' | 'nextAfterMs'; plus: number }

export type Cost = { units: number } | { of: 'capacity' | 'half' | 'remaining'; plus: number }

/** The algorithms that the script has. */
export const algorithms: AlgorithmName[] = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
]

const most = 2 ** 51
const mostParts = Math.floor(2 ** 53 / 3)
const day = 86_400_000
const around = fc.constantFrom(-1, 0, 1)

const windowMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 4, arbitrary: fc.constantFrom(1000, 10_000, 60_000, 3_600_000, day, 31 * day) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: most }) },
)

/**
 * A quota that the window has room for: the product is at most 2^53 / 3. One unit more is still a legal
 * cost. A log is as long as its limit.
 */
const units = (window: number, algorithm: AlgorithmName, small: boolean) => {
  if (small) return fc.integer({ min: 1, max: 9 })
  const max = Math.min(
    Math.floor(mostParts / window),
    algorithm === 'sliding-log' ? 1000 : most - 1,
  )
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: Math.min(max, 12) }) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: Math.min(max, 1000) }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max }) },
    { weight: 1, arbitrary: fc.constant(max) },
  )
}

const policy = (names: AlgorithmName[], small: boolean): fc.Arbitrary<Omit<ModelPolicy, 'tag'>> =>
  fc
    .tuple(small ? fc.integer({ min: 1, max: 30 }) : windowMs, fc.constantFrom(...names))
    .chain(([window, algorithm]) =>
      fc.record({
        algorithm: fc.constant(algorithm),
        windowMs: fc.constant(window),
        limit: units(window, algorithm, small),
        burst: units(window, algorithm, small),
        align: fc.constantFrom('first-request', 'clock'),
      }),
    )

const wait: fc.Arbitrary<Wait> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ms: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ ms: fc.integer({ min: -3, max: 10 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ eighths: fc.integer({ min: -6, max: 20 }), plus: around }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      until: fc.constantFrom('retryAfterMs', 'resetAfterMs', 'nextAfterMs'),
      plus: around,
    }),
  },
)

const cost: fc.Arbitrary<Cost> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ units: fc.constantFrom(1, 1, 1, 0, 2, 3) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      of: fc.constantFrom('capacity', 'half', 'remaining', 'remaining', 'remaining'),
      plus: around,
    }),
  },
  { weight: 1, arbitrary: fc.record({ units: fc.integer({ min: 0, max: most }) }) },
)

/** `subjects` and `policies`: how many there are. One row per subject and policy: `play.ts` sees to it. */
const ask = (subjects: number, policies: number): fc.Arbitrary<Ask> =>
  fc.record({
    mode: fc.constantFrom('take', 'take', 'take', 'take', 'look', 'give-back', 'shadow', 'shadow'),
    rows: fc.array(
      fc.record({ policy: fc.nat(policies - 1), subject: fc.nat(subjects - 1), cost }),
      { minLength: 1, maxLength: subjects * policies > 1 ? 4 : 1 },
    ),
    receipt: fc.option(fc.nat(4)),
  })

export interface Shape {
  policies?: number
  subjects?: number
  /** Requests in one call. */
  requests?: number
  steps?: number
  /** Windows and quotas so small that every millisecond and every unit can be tried. */
  small?: boolean
}

export function schedule(names: AlgorithmName[], shape: Shape = {}): fc.Arbitrary<Schedule> {
  const { policies: count = 1, subjects = 1, requests = 1, steps = 12, small = false } = shape
  const start = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1_789_000_000_000, max: 1_789_000_100_000 }) },
    { weight: 1, arbitrary: fc.constantFrom(0, 2 ** 50) },
  )
  const policies = fc
    .array(policy(names, small), { minLength: count, maxLength: count })
    .map((some) => some.map((one, index) => ({ ...one, tag: `t${index}` })))
  return fc.tuple(start, policies).chain(([start, policies]) =>
    fc.record({
      start: fc.constant(start),
      policies: fc.constant(policies),
      steps: fc.array(
        fc.record({
          wait,
          change: fc.option(change(policies, small), { freq: 6 }),
          requests: fc.array(ask(subjects, count), { minLength: 1, maxLength: requests }),
        }),
        { minLength: 1, maxLength: steps, size: '+1' },
      ),
    }),
  )
}

const change = (policies: ModelPolicy[], small: boolean) =>
  fc.nat(policies.length - 1).chain((policy) => {
    const { windowMs, algorithm } = policies[policy]!
    const size = units(windowMs, algorithm, small)
    return fc.record({ policy: fc.constant(policy), limit: size, burst: size })
  })
