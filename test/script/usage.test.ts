/** The laws of `cost.usage`: how much streams in flight spend of one budget, however their calls overtake each other. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Store, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import type { PolicyLimit } from '../../src/core/decide/limit.ts'
import { type Charges, type Kept, settle, takeMore } from '../../src/core/decide/settle.ts'
import { meterBody } from '../../src/features/bodies/meter.ts'
import { lawRuns, property } from '../support/law.ts'
import { event, limitWith } from '../support/metered.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

const WINDOW_MS = 3_600_000
const settled = () => new Promise((resolve) => setImmediate(resolve))
const utf8 = new TextEncoder()

const doing = <D extends string, M extends object>(
  name: D,
  more: { [K in keyof M]: fc.Arbitrary<M[K]> },
) => fc.record({ do: fc.constant(name), ...more }) as fc.Arbitrary<{ do: D } & M>
const stream = fc.nat(7)
const step = fc.oneof(
  { weight: 3, arbitrary: doing('start', {}) },
  /** Events of one stream; some arrive together. */
  { weight: 6, arbitrary: doing('events', { stream, events: fc.integer({ min: 1, max: 12 }) }) },
  /**
   * The usage is `max` less this number of units, at least the events that have passed. A stream with cut ends without usage, so that its
   * events are what it has spent.
   */
  { weight: 2, arbitrary: doing('end', { stream, unused: fc.nat(40) }) },
  { weight: 1, arbitrary: doing('hang-up', { stream }) },
  /** Delivers one of the calls that are under way. */
  { weight: 4, arbitrary: doing('arrive', { call: fc.nat(20) }) },
  { weight: 1, arbitrary: doing('wait', { ms: fc.nat(20_000) }) },
)

const schedules = fc.record({
  cut: fc.boolean(),
  algorithm: fc.constantFrom(
    ...(['fixed-window', 'fixed-window', 'sliding-window', 'token-bucket'] as const),
  ),
  budget: fc.integer({ min: 1, max: 60 }),
  otherwise: fc.integer({ min: 1, max: 12 }),
  beyond: fc.nat(30),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
})
type Schedule = typeof schedules extends fc.Arbitrary<infer S> ? S : never

/** A stream between the origin and a client that reads all events at once. */
interface Stream {
  write: (text: string) => void
  close: (unused: number) => void
  hangUp: () => void
  /** The events that the client has received. */
  passed: () => number
  isOpen: () => boolean
}

/** Runs a schedule, and returns what the streams have spent. */
async function run({ cut, algorithm, budget, otherwise, beyond, steps }: Schedule) {
  const max = otherwise + beyond
  const startedAt = Math.ceil(1_789_000_000_000 / WINDOW_MS) * WINDOW_MS
  let now = startedAt
  const calls: (() => Promise<void>)[] = []
  const evaluate = (requests: StoreRequest[]) => server.decide(requests as never, now)
  /** Decides each call when the schedule delivers it. */
  const store = {
    decide(requests: StoreRequest[]) {
      const { promise, resolve } = Promise.withResolvers<StoreReply>()
      calls.push(async () => resolve(await evaluate(requests)))
      return promise
    },
  } as Store

  const subject = newSubject()
  const base = {
    ...limitWith(
      { usage: 'usage.total_tokens', otherwise, max, cut },
      {
        algorithm,
        limit: budget,
        window: WINDOW_MS,
        ...(algorithm === 'fixed-window' && { align: 'clock' }),
      },
    ),
    subject,
  }
  const streams: Stream[] = []
  let unsettled = 0
  let mostUnsettled = 0
  /** Units of streams that have ended. */
  let spent = 0
  /** Units that these streams are charged. A response whose usage is unknown costs at least its reservation. */
  let charged = 0

  function start(limit: PolicyLimit, at: number): Stream {
    let passed = 0
    let isOpen = true
    let usage: number | undefined
    let text = ''
    let controller: ReadableStreamDefaultController<Uint8Array>
    const body = new ReadableStream<Uint8Array>({
      start(given) {
        controller = given
      },
      cancel() {
        isOpen = false
      },
    })
    const charges: Charges = new Map([[limit, { decidedAt: at }]])
    const response = meterBody(
      new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
      {
        limits: [limit],
        isSent: true,
        take: (more: PolicyLimit) => takeMore(more, charges, store, () => {}),
        end(kept: Kept) {
          isOpen = false
          spent += usage ?? passed
          charged += usage ?? Math.max(passed, otherwise)
          const head = { status: 200, headers: new Headers() }
          settle(charges, { store }, head, () => {}, kept).then(() => {
            unsettled -= 1
          })
        },
      },
      100_000,
    )!
    unsettled += 1
    mostUnsettled = Math.max(mostUnsettled, unsettled)
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    const reading = (async () => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        text += decoder.decode(value)
        passed = text.split('"index"').length - 1
      }
    })()
    reading.catch(() => {})
    return {
      passed: () => passed,
      isOpen: () => isOpen,
      write: (part) => controller.enqueue(utf8.encode(part)),
      close(unused) {
        isOpen = false
        if (!cut) {
          usage = Math.max(passed, max - unused)
          controller.enqueue(utf8.encode(event({ usage: { total_tokens: usage } })))
        }
        controller.close()
      },
      hangUp() {
        isOpen = false
        reader.cancel().catch(() => {})
      },
    }
  }

  const drain = async () => {
    do {
      for (const call of calls.splice(0)) await call()
      for (let turn = 0; turn < 10; turn += 1) await settled()
    } while (calls.length > 0)
  }

  for (const one of steps) {
    const open = streams.filter((stream) => stream.isOpen())
    const stream = 'stream' in one && open.length > 0 ? open[one.stream % open.length]! : undefined
    if (one.do === 'start') {
      const limit = { ...base }
      const { decidedAt, states } = await evaluate([{ mode: 'take', limits: [limit] }])
      if (states[0]![0]!.allowed) streams.push(start(limit, decidedAt))
    } else if (one.do === 'wait') {
      now = Math.min(now + one.ms, startedAt + WINDOW_MS - 1)
    } else if (one.do === 'arrive' && calls.length > 0) {
      await calls.splice(one.call % calls.length, 1)[0]!()
    } else if (one.do === 'events' && stream) {
      // Without cut, the origin itself ends a response at `max`.
      const room = cut ? one.events : Math.max(0, max - stream.passed())
      stream.write(event({ index: 0 }).repeat(Math.min(one.events, room)))
    } else if (one.do === 'end' && stream) {
      stream.close(one.unused)
    } else if (one.do === 'hang-up' && stream) {
      stream.hangUp()
    }
    for (let turn = 0; turn < 10; turn += 1) await settled()
  }
  const inFlight = streams.filter((stream) => stream.isOpen())
  const spentNow = spent + inFlight.reduce((sum, stream) => sum + stream.passed(), 0)
  const elapsed = now - startedAt
  const refilled = algorithm === 'token-bucket' ? (elapsed * budget) / WINDOW_MS : 0
  const bound = (each: number) => budget + refilled + mostUnsettled * each
  for (const stream of inFlight) stream.hangUp()
  await drain()
  await drain()
  const { states } = await evaluate([{ mode: 'peek', limits: [{ ...base, cost: 0 }] }])
  return { spentNow, charged, bound, remaining: states[0]![0]!.remaining, unsettled }
}

property(
  'Streams in flight spend at most the budget and what each may use beyond its charges, and all that they spend is charged.',
  schedules,
  async (schedule) => {
    const { spentNow, bound, charged, remaining, unsettled } = await run(schedule)
    const { cut, algorithm, otherwise, beyond, budget } = schedule
    // With cut, a stream has charged all but its last chunk. Without, it has charged its reservation.
    expect(spentNow).toBeLessThanOrEqual(bound(cut ? otherwise : beyond))
    expect(unsettled).toBe(0)
    // In other algorithms, units flow back.
    if (algorithm === 'fixed-window') expect(remaining).toBe(Math.max(0, budget - charged))
  },
  lawRuns,
)
