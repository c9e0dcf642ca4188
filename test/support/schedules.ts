import fc from 'fast-check'
import type { AlgorithmName, ModelPolicy, ModelRequest } from '../model/model.ts'

/**
 * A random schedule. Some waits and costs are relative (one millisecond before the retry, one unit more than remains),
 * because limiters fail at these edges. `run-on-oracle.ts` resolves them to numbers.
 */
export interface Schedule {
  start: number
  policies: ModelPolicy[]
  /** For each policy, other terms of the same counter. */
  plans: Pick<ModelPolicy, 'limit' | 'burst'>[][]
  steps: Step[]
}

export interface Step {
  wait: Wait
  /** True if a negative wait counts as 0. */
  forward?: boolean
  /** How far the clock that chooses the calendar's periods is ahead of Redis' clock, in ms. */
  skew: number
  /** A new limit and burst for a policy, and a new penalty if it has one, from this step on. */
  change: ({ policy: number } & Pick<ModelPolicy, 'limit' | 'burst' | 'penalty'>) | null
  /** One call. */
  requests: Ask[]
}

export interface Ask {
  mode: ModelRequest['mode']
  /** `slot` is the id of the slots to take or release, and the first of the values. */
  limits: AskedLimit[]
  /** The length of a ban in eighths of the longest allowed ban, and the life of a limit of an operator in eighths of the window. */
  eighths: number
  /** The limit of an operator. It is reduced to the largest one that the window allows. */
  units: number
  /** True if operators may set other limits. */
  overrides: boolean
  /** How many steps ago the refunded units were taken. null leaves out `decidedAt`. */
  decidedAt: number | null
}

interface AskedLimit {
  policy: number
  plan: number
  subject: number
  cost: Cost
  slot: number
  /** The floor in eighths of the quota. */
  floor: number
}

export type Wait =
  | { ms: number }
  /** Eighths of the first policy's window. */
  | { eighths: number; plus: number }
  /** A wait of the last limit of the previous call. */
  | { until: 'retryAfterMs' | 'resetAfterMs' | 'nextAfterMs'; plus: number }

export type Cost = { units: number } | { of: 'capacity' | 'half' | 'remaining'; plus: number }

/** The algorithms that count units. */
export type Counting = Exclude<AlgorithmName, 'concurrency' | 'distinct'>
export const algorithms: Counting[] = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
]

/** The kinds of policies for which laws are stated: the algorithms, calendar windows, slots, and different values. */
export const kinds = [...algorithms, 'calendar', 'concurrency', 'distinct'] as const
export type Kind = (typeof kinds)[number]

const most = 2 ** 51
const mostParts = Math.floor(2 ** 53 / 3)
const hour = 3_600_000
const day = 24 * hour
const around = fc.constantFrom(-1, 0, 1)

const windowMs = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 4, arbitrary: fc.constantFrom(1000, 10_000, 60_000, 3_600_000, day, 31 * day) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: most }) },
)

/**
 * A limit that the script accepts for the window: the product is at most 2^53 / 3, but any exact number for a fixed window. The limit of
 * a sliding log is small, because its log is as long as its limit.
 */
const units = (window: number, algorithm: AlgorithmName, small = false) => {
  if (small) return fc.integer({ min: 1, max: 9 })
  const max =
    algorithm === 'fixed-window'
      ? Number.MAX_SAFE_INTEGER - 1 // one unit more is still a valid cost
      : Math.min(
          Math.floor(mostParts / window),
          algorithm === 'sliding-log'
            ? 1000
            : algorithm === 'concurrency' || algorithm === 'distinct'
              ? 100
              : most - 1,
        )
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: Math.min(max, 12) }) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: Math.min(max, 1000) }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max }) },
    { weight: 1, arbitrary: fc.constant(max) },
  )
}

const policy = (
  names: readonly Kind[],
  { small = false, penalties = false }: Shape,
): fc.Arbitrary<Omit<ModelPolicy, 'tag'>> =>
  fc.constantFrom(...names).chain((kind) => {
    const algorithm = kind === 'calendar' ? 'fixed-window' : kind
    const window = kind === 'calendar' ? calendarMs : windowMs
    return (small ? fc.integer({ min: 1, max: 30 }) : window).chain((window) =>
      fc.record({
        algorithm: fc.constant<AlgorithmName>(algorithm),
        windowMs: fc.constant(window),
        limit: units(longest(kind, window), algorithm, small),
        burst: units(longest(kind, window), algorithm, small),
        align: fc.constantFrom<ModelPolicy['align']>('first-request', 'clock'),
        ...(kind === 'calendar' && { lengths: calendar(window) }),
        ...(penalties && { penalty }),
      }),
    )
  })

/** A day, a week or a month, or a window so short that tests can try every millisecond. */
const calendarMs = fc.oneof(
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 1, arbitrary: fc.constantFrom(day, 7 * day, 31 * day) },
)

/** Lengths of periods: those of a calendar, or any lengths for a short window. */
const calendar = (window: number) => {
  const month = [28, 29, 30, 31].map((days) => days * day)
  const others = [window - hour, window, window + hour]
  const length =
    window < hour
      ? fc.integer({ min: 1, max: window })
      : fc.constantFrom(...(window === 31 * day ? month : others))
  return fc.array(length, { minLength: 1, maxLength: 4 })
}

/** The longest period of a quota. */
const longest = (kind: Kind, window: number) =>
  kind === 'calendar' && window >= hour ? window + hour : window

/** A penalty with times that the waits of a schedule can reach. */
const penalty: fc.Arbitrary<NonNullable<ModelPolicy['penalty']>> = fc.record({
  after: fc.integer({ min: 1, max: 4 }),
  withinMs: windowMs,
  banMs: windowMs,
  maxMs: windowMs,
})

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

/** `subjects`, `policies` and `plans` are counts. `run-on-oracle.ts` removes duplicates of a subject and policy. */
const ask = (
  subjects: number,
  policies: number,
  { operators = false, plans = 0, floors = false, debts = false, overrides = false }: Shape,
): fc.Arbitrary<Ask> =>
  fc.record({
    mode: fc.constantFrom<Ask['mode']>(
      ...(['take', 'take', 'take', 'take', 'peek', 'refund', 'follow', 'follow'] as const),
      ...(operators ? (['reset', 'ban', 'unban'] as const) : []),
      ...(debts ? (['debt', 'debt'] as const) : []),
      ...(overrides ? (['override', 'override', 'restore'] as const) : []),
    ),
    limits: fc.array(
      fc.record({
        policy: fc.nat(policies - 1),
        plan: fc.nat(plans),
        subject: fc.nat(subjects - 1),
        cost,
        slot: fc.nat(4),
        floor: floors ? fc.constantFrom(0, 0, 1, 4, 7, 8) : fc.constant(0),
      }),
      { minLength: 1, maxLength: subjects * policies > 1 ? 4 : 1 },
    ),
    decidedAt: fc.option(fc.nat(4)),
    eighths: fc.nat(8),
    units: overrides
      ? fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1e14 }))
      : fc.constant(1),
    overrides: fc.constant(overrides),
  })

export interface Shape {
  policies?: number
  subjects?: number
  /** The number of requests in one call. */
  requests?: number
  steps?: number
  /** Windows and limits so small that tests can try every millisecond and every unit. */
  small?: boolean
  /** True if refusals may lead to bans. */
  penalties?: boolean
  /** True if operators reset, ban and unban. */
  operators?: boolean
  /** True if requests may have floors. */
  floors?: boolean
  /** True if units may be charged as debt. */
  debts?: boolean
  /** True if operators set and remove limits of single keys. */
  overrides?: boolean
  /** The number of plans of a policy, besides its own terms. Each request may use any of them. */
  plans?: number
}

export function schedule(names: readonly Kind[], shape: Shape = {}): fc.Arbitrary<Schedule> {
  const { policies: count = 1, subjects = 1, requests = 1, steps = 12, plans = 0 } = shape
  const start = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1_789_000_000_000, max: 1_789_000_100_000 }) },
    { weight: 1, arbitrary: fc.constantFrom(0, 2 ** 50) },
  )
  const policies = fc
    .array(policy(names, shape), { minLength: count, maxLength: count })
    .map((some) => some.map((one, index) => ({ ...one, tag: `t${index}` })))
  return fc.tuple(start, policies).chain(([start, policies]) =>
    fc.record({
      start: fc.constant(start),
      policies: fc.constant(policies),
      plans: fc.tuple(
        ...policies.map((one) =>
          fc.array(terms(one, shape), { minLength: plans, maxLength: plans }),
        ),
      ),
      steps: fc.array(
        fc.record({
          wait,
          skew: fc.oneof(
            { weight: 3, arbitrary: fc.constant(0) },
            { weight: 1, arbitrary: fc.integer({ min: -5, max: 5 }) },
          ),
          change: fc.option(change(policies, shape), { freq: 6 }),
          requests: fc.array(ask(subjects, count, shape), {
            minLength: 1,
            maxLength: requests,
          }),
        }),
        { minLength: 1, maxLength: steps, size: '+1' },
      ),
    }),
  )
}

const terms = ({ windowMs, algorithm, lengths }: ModelPolicy, { small }: Shape) => {
  const size = units(longest(lengths ? 'calendar' : algorithm, windowMs), algorithm, small)
  return fc.record({ limit: size, burst: size })
}

const change = (policies: ModelPolicy[], shape: Shape) =>
  fc
    .nat(policies.length - 1)
    .chain((policy) =>
      fc
        .tuple(terms(policies[policy]!, shape), shape.penalties ? penalty : fc.constant(undefined))
        .map(([terms, penalty]) => ({ policy, ...terms, ...(penalty && { penalty }) })),
    )
