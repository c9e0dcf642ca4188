/** Sinks that work, fail and hang. The clock and all timers are the test's. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createCounters } from '../../../../src/features/observe/counters.ts'
import type { Counts, Sink } from '../../../../src/features/observe/report.ts'
import { createReports } from '../../../../src/features/observe/reports.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const NOW = 1_789_000_000_000
const counted = {
  policy: 'a',
  outcome: 'allowed',
  decidedBy: 'store',
  units: 1,
  near: false,
} as const

function setUp(sends: Sink['send'][], everyMs = 10_000) {
  const lines: string[] = []
  const waiting: Promise<unknown>[] = []
  const counters = createCounters(true)
  const reports = createReports({
    sinks: sends.map((send, index) => ({ name: `sink-${index}`, send })),
    everyMs,
    take: counters.take,
    log: (event, code) => void lines.push(`${event} ${code}`),
  })
  return {
    reports,
    lines,
    waiting,
    /** A decision at a time after the start. */
    decide(ms: number) {
      counters.decided(counted, NOW + ms)
      reports.send(NOW + ms, {}, (promise) => void waiting.push(promise))
    },
  }
}

const decisionsIn = ({ series }: Counts) => series.reduce((sum, one) => sum + one.decisions, 0)

test('A report is sent beside the first request after the interval, with the counts since the last one.', async () => {
  const received: Counts[] = []
  const { decide, waiting } = setUp([(counts) => void received.push(counts)])
  for (const ms of [0, 1, 9_999]) decide(ms)
  expect(waiting).toEqual([])
  decide(10_000)
  for (const ms of [10_001, 19_999]) decide(ms)
  decide(60_000)
  decide(60_001)
  await vi.runAllTimersAsync()
  expect(waiting).toHaveLength(2)
  expect(received.map(decisionsIn)).toEqual([4, 3])
  expect(received.map(({ from, to }) => [from - NOW, to - NOW])).toEqual([
    [0, 10_000],
    [10_000, 60_000],
  ])
})

test('A report starts only after the request has gone on.', async () => {
  const send = vi.fn()
  const { decide } = setUp([send])
  decide(0)
  decide(10_000)
  await Promise.resolve()
  expect(send).not.toHaveBeenCalled()
  await vi.runAllTimersAsync()
  expect(send).toHaveBeenCalledOnce()
})

test('A sink that fails loses its report, and the other sinks get theirs.', async () => {
  const send = vi.fn()
  const fails = [
    () => {
      throw new TypeError('no binding')
    },
    () => Promise.reject(new RangeError('refused')),
  ]
  const { decide, reports, lines, waiting } = setUp([...fails, send])
  decide(0)
  decide(10_000)
  await vi.runAllTimersAsync()
  await Promise.all(waiting) // none rejects
  expect(send).toHaveBeenCalledOnce()
  expect(reports.dropped()).toEqual({ 'sink-0': 1, 'sink-1': 1, 'sink-2': 0 })
  expect(lines).toEqual(['report-lost TypeError', 'report-lost RangeError'])
})

test('A sink that hangs has one report in flight at most, and loses each report after five seconds.', async () => {
  let inFlight = 0
  let most = 0
  const { decide, reports, lines, waiting } = setUp([
    () => {
      inFlight += 1
      most = Math.max(most, inFlight)
      setTimeout(() => {
        inFlight -= 1
      }, 5_000)
      return new Promise(() => {})
    },
  ])
  decide(0)
  for (let slot = 1; slot <= 3; slot++) {
    decide(slot * 10_000)
    await vi.advanceTimersByTimeAsync(10_000)
  }
  await Promise.all(waiting)
  expect(most).toBe(1)
  expect(reports.dropped()).toEqual({ 'sink-0': 3 })
  expect(lines).toEqual(new Array(3).fill('report-lost timeout'))
})

test('A report that is due while the previous one is in flight is lost, and is counted.', async () => {
  const send = vi.fn(() => new Promise<void>((resolve) => setTimeout(resolve, 4_000)))
  const { decide, reports, lines } = setUp([send], 1_000)
  decide(0)
  for (const ms of [1_000, 2_000, 3_000]) {
    decide(ms)
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(send).toHaveBeenCalledOnce()
  await vi.runAllTimersAsync()
  expect(reports.dropped()).toEqual({ 'sink-0': 2 })
  expect(lines).toEqual(['report-lost slow', 'report-lost slow'])
  decide(10_000)
  await vi.runAllTimersAsync()
  expect(send).toHaveBeenCalledTimes(2)
  expect(reports.dropped()).toEqual({ 'sink-0': 2 })
})

test('A report of a request that was cancelled is counted as lost by the next one, which is sent.', async () => {
  const received: number[] = []
  let isKilled = true
  const { decide, reports } = setUp([
    (counts) => {
      if (isKilled) return new Promise(() => {})
      received.push(decisionsIn(counts))
    },
  ])
  decide(0)
  decide(10_000)
  await vi.advanceTimersByTimeAsync(0)
  vi.clearAllTimers() // as if the runtime had ended the request
  isKilled = false
  decide(20_000)
  await vi.runAllTimersAsync()
  expect(received).toEqual([1])
  expect(reports.dropped()).toEqual({ 'sink-0': 1 })
})

test('Without a sink nothing is sent.', () => {
  const { decide, waiting } = setUp([])
  for (const ms of [0, 10_000, 100_000]) decide(ms)
  expect(waiting).toEqual([])
})
