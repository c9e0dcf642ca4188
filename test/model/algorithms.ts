/** Implements the algorithms of docs/explanation/algorithms.md: their states, and the check that a cost fits. limit.ts derives the waits. */
import type { AlgorithmName } from './types.ts'

/** The start and end of the current period, and the end of the next one, in ms since the epoch. */
export type Period = [start: bigint, end: bigint, nextEnd: bigint]

/** The stored state of one limit: its numbers and their time. The numbers of a log are its scores. */
export interface Held {
  time: bigint
  numbers: bigint[]
  /** The end of a calendar period. */
  end?: bigint
}

/** A state as it is stored. */
type Written = Held & { runOut: bigint }

export interface Terms {
  limit: bigint
  window: bigint
  burst: bigint
  clock: boolean
  period: Period | undefined
}

export interface Algorithm {
  capacity(terms: Terms): bigint
  /** Returns the state at `t`, or an unused limit without a state. `t` is never earlier than the stored time. */
  at(held: Held | undefined, t: bigint, terms: Terms): Held
  fits(held: Held, cost: bigint, t: bigint, terms: Terms): boolean
  charge(held: Held, cost: bigint, t: bigint, terms: Terms): Held
  /** Charges a debt: a cost that need not fit, up to a bound. */
  owe(held: Held, cost: bigint, t: bigint, terms: Terms): Held
  /**
   * Returns `held` itself if nothing is refunded.
   * @param written the stored state, which `held` is derived from
   */
  refund(
    held: Held,
    units: bigint,
    t: bigint,
    terms: Terms,
    decidedAt: bigint | undefined,
    written: Written | undefined,
  ): Held
}

export const least = (a: bigint, b: bigint) => (a < b ? a : b)
export const greatest = (a: bigint, b: bigint) => (a > b ? a : b)

/** The most units times window, which keeps the products of the script exact. */
const mostParts = 2n ** 53n / 3n

/** Returns the period of a new count. The current one also applies before `start`. Later periods are as long as the next one. */
function periodAt(t: bigint, [start, end, nextEnd]: Period) {
  if (t < end) return { time: start, end }
  const length = nextEnd - end
  const passed = (t - end) / length
  return { time: end + passed * length, end: end + (passed + 1n) * length }
}

const fixedWindow: Algorithm = {
  capacity: ({ limit }) => limit,
  at(held, t, { window, clock, period }) {
    if (held && t < (held.end ?? held.time + window)) return held
    if (period) return { ...periodAt(t, period), numbers: [0n] }
    return { time: clock ? t - (t % window) : t, numbers: [0n] }
  },
  fits: ({ numbers: [count] }, cost, _, { limit }) => count! + cost <= limit,
  charge: ({ numbers: [count], ...rest }, cost) => ({ ...rest, numbers: [count! + cost] }),
  owe: ({ numbers: [count], ...rest }, cost) => ({
    ...rest,
    numbers: [least(count! + cost, 2n ** 53n - 1n)],
  }),
  refund(held, units, _, __, decidedAt) {
    const [count] = held.numbers
    if (count === 0n || (decidedAt !== undefined && decidedAt < held.time)) return held
    return { ...held, numbers: [greatest(0n, count! - units)] }
  },
}

const slidingWindow: Algorithm = {
  capacity: ({ limit }) => limit,
  at(held, t, { window }) {
    const start = t - (t % window)
    if (held && held.time === start) return held
    const previous = held && held.time + window === start ? held.numbers[0]! : 0n
    return { time: start, numbers: [0n, previous] }
  },
  fits({ time, numbers: [current, previous] }, cost, t, { limit, window }) {
    const left = time + window - t
    return previous! * left + (current! + cost) * window <= limit * window
  },
  charge: ({ time, numbers: [current, previous] }, cost) => ({
    time,
    numbers: [current! + cost, previous!],
  }),
  owe: ({ time, numbers: [current, previous] }, cost, _, { window }) => ({
    time,
    numbers: [least(current! + cost, mostParts / window), previous!],
  }),
  refund(held, units, _, __, decidedAt) {
    const [current, previous] = held.numbers
    if (current === 0n || (decidedAt !== undefined && decidedAt < held.time)) return held
    return { time: held.time, numbers: [greatest(0n, current! - units), previous!] }
  },
}

const slidingLog: Algorithm = {
  capacity: ({ limit }) => limit,
  at: (held, t) => held ?? { time: t, numbers: [] },
  fits: ({ numbers }, cost, t, { limit, window }) =>
    BigInt(numbers.filter((score) => score > t - window).length) + cost <= limit,
  // Only a charge removes dead entries.
  charge: ({ numbers }, cost, t, { window }) => ({
    time: t,
    numbers: [
      ...numbers.filter((score) => score > t - window),
      ...Array<bigint>(Number(cost)).fill(t),
    ],
  }),
  owe(held, cost, t, terms) {
    const live = held.numbers.filter((score) => score > t - terms.window)
    const room = least(cost, 10_000n - BigInt(live.length))
    return room === 0n ? held : this.charge(held, room, t, terms)
  },
  refund(held, units, t, { window }, decidedAt) {
    // The units taken at `decidedAt` no longer count once that time has left the window.
    if (decidedAt !== undefined && decidedAt <= t - window) return held
    const live = held.numbers.filter((score) => score > t - window)
    const gone = Number(least(units, BigInt(live.length)))
    if (gone === 0) return held
    // Remove the units of `decidedAt`, or else the newest before it, and then the newest units of the log.
    const early = live.filter((score) => decidedAt !== undefined && score <= decidedAt)
    const kept = early.slice(0, Math.max(0, early.length - gone))
    const later = live.slice(early.length)
    const rest = Math.max(0, gone - early.length)
    const dead = held.numbers.slice(0, held.numbers.length - live.length)
    const numbers = [...dead, ...kept, ...later.slice(0, later.length - rest)]
    return { time: numbers.at(-1) ?? t, numbers }
  },
}

/**
 * Returns the parts that a refund returns to a bucket. Without the refunded units the bucket may have been full since
 * `decidedAt`, so the parts that have flowed back since then are not returned a second time.
 */
function refundedParts(
  units: bigint,
  t: bigint,
  { limit, window }: Terms,
  decidedAt: bigint | undefined,
): bigint {
  const flowed = decidedAt === undefined ? 0n : greatest(0n, t - decidedAt) * limit
  const parts = least(units, BigInt(Number.MAX_SAFE_INTEGER) / window) * window // no charge has more units
  return greatest(0n, parts - flowed)
}

/** True if a bucket runs out before it would be full at this rate. So faster terms have written it. */
const isFaster = ({ time, runOut, numbers: [missing] }: Written, rate: bigint) =>
  rate * (runOut - time) < missing!

/**
 * The state is the number of parts missing from a full bucket. A unit is `window` parts, and `limit` parts flow back per
 * millisecond. The number means the same under every plan, and may exceed the burst of a smaller plan.
 */
const tokenBucket: Algorithm = {
  capacity: ({ burst }) => burst,
  at(held, t, { limit }) {
    const missing = held ? held.numbers[0]! - (t - held.time) * limit : 0n
    return { time: t, numbers: [greatest(0n, missing)] }
  },
  fits: ({ numbers: [missing] }, cost, _, { burst, window }) =>
    missing! + cost * window <= burst * window,
  charge: ({ time, numbers: [missing] }, cost, _, { window }) => ({
    time,
    numbers: [missing! + cost * window],
  }),
  owe: ({ time, numbers: [missing] }, cost, _, { window }) => ({
    time,
    numbers: [least(missing! + cost * window, mostParts)],
  }),
  refund(held, units, t, terms, decidedAt, written) {
    if (decidedAt !== undefined && written && isFaster(written, terms.limit)) return held
    const [missing] = held.numbers
    const parts = refundedParts(units, t, terms, decidedAt)
    if (missing === 0n || parts === 0n) return held
    return { time: held.time, numbers: [greatest(0n, missing! - parts)] }
  },
}

export const algorithms: Record<Exclude<AlgorithmName, 'concurrency' | 'distinct'>, Algorithm> = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
}
