import type { Sample } from './load.ts'
import { LIMIT, SHARE } from './policies.ts'
import type { StallMeter } from './stall.ts'

/** One run of a phase. Times are of `performance.now()`. */
export interface Span {
  name: string
  start: number
  /** When the fault ended; `undefined` for a phase without a fault. */
  healed: number | undefined
  end: number
  /** When Redis lost its counters, if it did. */
  lost: number | undefined
}

export interface Figures {
  phase: string
  requests: number
  /** Unexpected failures: no response, or any 5xx except the 503 of `onStoreError: 'deny'`. */
  errors: number
  /** Requests that a fallback decided. */
  fallback: number
  /** The slowest response in ms, as measured, and without the time for which the machine was stalled. */
  slowestMs: number
  slowestLessStallMs: number
  /** Hot keys that Redis decided, and the requests that all of them together admitted beyond their limit. */
  keys: number
  overAdmitted: number
  /** Hot keys that isolates counted locally, and the requests that all of them together admitted beyond the share. */
  localKeys: number
  localOverAdmitted: number
  /** Seconds until Redis decided again: the maximum of all rounds, as measured and without stalls. `undefined` without a fault. */
  recoverySeconds: number | undefined
  recoveryLessStallSeconds: number | undefined
}

/** Number of consecutive decisions by Redis that count as a recovery. A single one may be luck. */
const IN_A_ROW = 20

/** When Redis recovered after `healed`; `undefined` if it did not. `samples` are in the order of sending. */
export function recoveredAt(samples: Sample[], healed: number): number | undefined {
  let since: number | undefined
  let row = 0
  for (const { sent, decided } of samples) {
    if (sent < healed) continue
    if (row === 0) since = sent
    row = decided ? row + 1 : 0
    if (row === IN_A_ROW) return since
  }
  return undefined
}

/** The figures of all rounds of one phase. */
export async function figuresOf(
  phase: string,
  spans: Span[],
  all: Sample[],
  stall: StallMeter,
): Promise<Figures> {
  const within = (span: Span) => all.filter(({ sent }) => sent >= span.start && sent < span.end)
  const samples = spans.flatMap(within)
  const [hot, local] = [new Tally(LIMIT), new Tally(SHARE)]
  for (const span of spans) {
    const keys = byKey(within(span), all)
    for (const calls of keys.values()) {
      // A crash loses the counters, so a key that was in use before and after it has two quotas.
      const comparable = !span.lost || !livedThrough(calls, span.lost)
      const passed = calls.filter(({ status }) => status === 200)
      // A key that Redis never decided had no limit to meet.
      if (comparable && calls.some(({ decided }) => decided))
        hot.add(passed.filter(({ decided }) => decided).length)
      const alone = calls.filter(({ fallback }) => fallback === 'local')
      if (alone.length > 0) local.add(alone.filter(({ status }) => status === 200).length)
    }
  }
  const recoveries = await Promise.all(
    spans.filter(({ healed }) => healed !== undefined).map((span) => recovery(span, all, stall)),
  )
  return {
    phase,
    requests: samples.length,
    errors: samples.filter(isUnexpected).length,
    fallback: samples.filter(({ fallback }) => fallback !== undefined).length,
    ...(await slowest(samples, stall)),
    keys: hot.count,
    overAdmitted: hot.beyond,
    localKeys: local.count,
    localOverAdmitted: local.beyond,
    recoverySeconds: longest(recoveries.map(({ seconds }) => seconds)),
    recoveryLessStallSeconds: longest(recoveries.map(({ lessStall }) => lessStall)),
  }
}

const longest = (all: number[]) => (all.length > 0 ? Math.max(...all) : undefined)

/** Subtracts stalls of the machine: they make calls miss their deadline, which opens the circuit again without a fault. */
async function recovery({ healed, end }: Span, all: Sample[], stall: StallMeter) {
  const start = healed!
  const at = recoveredAt(
    all.filter(({ sent }) => sent < end),
    start,
  )
  if (at === undefined)
    return { seconds: Number.POSITIVE_INFINITY, lessStall: Number.POSITIVE_INFINITY }
  const stalled = await stall.between(start, at)
  return { seconds: (at - start) / 1000, lessStall: Math.max(0, at - start - stalled) / 1000 }
}

/** Counts keys, and the requests that they admitted beyond their bound. */
class Tally {
  count = 0
  beyond = 0
  readonly #bound: number

  constructor(bound: number) {
    this.#bound = bound
  }

  add(admitted: number): void {
    this.count += 1
    this.beyond += Math.max(0, admitted - this.#bound)
  }
}

const isUnexpected = ({ mode, status, fallback }: Sample) =>
  status === 0 || (status >= 500 && !(mode === 'deny' && status === 503 && fallback === 'deny'))

/** All calls of the hot keys whose first call is in `samples`. A key may be in use into the next phase. */
function byKey(samples: Sample[], all: Sample[]): Map<string, Sample[]> {
  const keys = new Map<string, Sample[]>()
  const begins = samples[0]?.sent ?? 0
  for (const sample of all) {
    if (!sample.hotKey) continue
    const calls = keys.get(sample.hotKey)
    if (calls) calls.push(sample)
    else keys.set(sample.hotKey, [sample])
  }
  const ends = samples.at(-1)?.sent ?? 0
  for (const [key, [first]] of keys) {
    if (first!.sent < begins || first!.sent > ends) keys.delete(key)
  }
  return keys
}

const livedThrough = (calls: Sample[], moment: number) =>
  calls[0]!.sent <= moment && calls.some(({ done }) => done >= moment)

async function slowest(samples: Sample[], stall: StallMeter) {
  let slowestMs = 0
  let slowestLessStallMs = 0
  for (const { sent, done } of samples) {
    const ms = done - sent
    slowestMs = Math.max(slowestMs, ms)
    if (ms <= slowestLessStallMs) continue
    slowestLessStallMs = Math.max(slowestLessStallMs, ms - (await stall.between(sent, done)))
  }
  return { slowestMs, slowestLessStallMs }
}
