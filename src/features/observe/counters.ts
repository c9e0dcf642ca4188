/** The counts of an isolate: since its start, since the last report, and in slots of ten seconds. Memory is bounded. */
import type { StoreCall } from '../../core/connection/store.ts'
import type { DecisionSummary } from './binding.ts'
import { type Counts, OTHER_POLICIES, type Series, type Stats, type StoreUsage } from './report.ts'
import { SpaceSaving } from './space-saving.ts'

export const SLOT_MS = 10_000
const KEPT_MS = 600_000
/** A configuration has at most 128 policies, but a live document may rename them. Later series count as `OTHER_POLICIES`. */
const MAX_SERIES = 2_048
const MAX_SKETCHES = 256

/** The upper bounds of the latency histogram, ms. At most 16: a point of Analytics Engine has room for 17 buckets. */
const BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000]

export type Counted = Pick<DecisionSummary, 'policy' | 'outcome' | 'decidedBy' | 'units' | 'near'>

class SeriesSet {
  readonly #series = new Map<string, Series>()

  add(key: string, counted: Counted): void {
    const { outcome, decidedBy, units, near } = counted
    const isOther = this.#series.size >= MAX_SERIES && !this.#series.has(key)
    const policy = isOther ? OTHER_POLICIES : (counted.policy ?? '')
    const id = isOther ? keyOf({ policy, outcome, decidedBy }) : key
    let series = this.#series.get(id)
    if (!series) {
      series = { policy, outcome, decidedBy, decisions: 0, units: 0, near: 0 }
      this.#series.set(id, series)
    }
    series.decisions += 1
    series.units += units
    if (near) series.near += 1
  }

  /** Copies, which later decisions do not change. */
  list(): Series[] {
    return [...this.#series.values()].map((series) => ({ ...series }))
  }
}

const keyOf = ({ policy = '', outcome, decidedBy }: Omit<Counted, 'units' | 'near'>) =>
  `${outcome} ${decidedBy} ${policy}`

function spanFrom(from: number) {
  const series = new SeriesSet()
  const sketches = new Map<string, SpaceSaving>()
  const latency = { bounds: BOUNDS_MS, counts: new Array(BOUNDS_MS.length + 1).fill(0), sum: 0 }
  const store: StoreUsage = { calls: 0, billedCommands: 0, errors: {}, latency }
  return {
    series,
    refuse(policy: string, subject: string): void {
      const sketch = sketches.get(policy) ?? new SpaceSaving()
      if (!sketches.has(policy) && sketches.size >= MAX_SKETCHES) return
      sketches.set(policy, sketch)
      sketch.add(subject)
    },
    call({ ms, code, billedCommands }: StoreCall, isOperators: boolean): void {
      if (isOperators) store.operators ??= { calls: 0, billedCommands: 0 }
      for (const part of isOperators ? [store, store.operators!] : [store]) {
        part.calls += 1
        part.billedCommands += billedCommands
      }
      if (code) store.errors[code] = (store.errors[code] ?? 0) + 1
      const bucket = BOUNDS_MS.findIndex((bound) => ms <= bound)
      latency.counts[bucket < 0 ? BOUNDS_MS.length : bucket]! += 1
      latency.sum += ms
    },
    /** @param now before `from` if the clock was set back */
    counts: (now: number): Counts => ({
      from,
      to: Math.max(from, now),
      series: series.list(),
      offenders: [...sketches]
        .flatMap(([policy, sketch]) => sketch.list().map((one) => ({ policy, ...one })))
        .sort((one, other) => other.refusals - one.refusals),
      store: structuredClone(store),
    }),
  }
}

type Span = ReturnType<typeof spanFrom>

/** @param reports true if `take` is called; otherwise its counts are not kept */
export function createCounters(reports: boolean) {
  // The clock of a Worker stands at 0 until its first request, so the spans begin with it.
  let total: Span | undefined
  let recent: Span | undefined
  let slots: { from: number; series: SeriesSet }[] = []

  function spansAt(now: number): Span[] {
    total ??= spanFrom(now)
    if (!reports) return [total]
    recent ??= spanFrom(now)
    return [total, recent]
  }

  function slotAt(now: number): SeriesSet {
    const latest = slots.at(-1)
    if (latest && latest.from <= now && now < latest.from + SLOT_MS) return latest.series
    const from = now - (now % SLOT_MS)
    // The times of concurrent requests differ by some ms, so the slot before the latest one may still be in use.
    const known = slots.find((one) => one.from === from)
    if (known && latest!.from === from + SLOT_MS) return known.series
    const slot = known ?? { from, series: new SeriesSet() }
    // Without the slots that are too old, or that lie in the future after the clock was set back.
    slots = [...slots.filter((one) => from - KEPT_MS < one.from && one.from < from), slot]
    return slot.series
  }

  return {
    decided(counted: Counted, now: number): void {
      const key = keyOf(counted)
      for (const { series } of spansAt(now)) series.add(key, counted)
      slotAt(now).add(key, counted)
    },
    refused(policy: string, subject: string, now: number): void {
      for (const span of spansAt(now)) span.refuse(policy, subject)
    },
    /** @param isOperators true for a call that charges no request */
    called(call: StoreCall, now: number, isOperators = false): void {
      for (const span of spansAt(now)) span.call(call, isOperators)
    },
    /** The counts since the last call of this function, or since the first decision. */
    take(now: number): Counts {
      const counts = (recent ?? spanFrom(now)).counts(now)
      recent = spanFrom(now)
      return counts
    },
    total: (now: number): Counts => (total ?? spanFrom(now)).counts(now),
    /** The last ten minutes, oldest first. */
    slots: (now: number): Stats['slots'] =>
      slots
        .filter(({ from }) => now - KEPT_MS < from + SLOT_MS)
        .map(({ from, series }) => ({ from, to: from + SLOT_MS, series: series.list() })),
  }
}
