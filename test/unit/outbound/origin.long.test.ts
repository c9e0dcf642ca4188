/** 64 callers in four processes keep to the limits of one origin. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { limitedOrigin } from '../../support/limited-origin.ts'
import { useOutbound } from '../../support/outbound.ts'

const stack = useOutbound()
const program = fileURLToPath(new URL('../../support/outbound-callers.ts', import.meta.url))
const PROCESSES = 4

interface Seen {
  statuses: Record<string, number>
  stalls: { from: number; ms: number }[]
}

/** Runs the callers until a time. Returns the statuses that they have seen, and how much of a time the machine let them run. */
async function callers(origin: string, until: number, secret: string) {
  const env = {
    ...process.env,
    ...stack.env(),
    SLUICE_SECRET: secret,
    ORIGIN: origin,
    CALLERS: '16',
    UNTIL: `${until}`,
  }
  const runs = Array.from({ length: PROCESSES }, () =>
    promisify(execFile)(process.execPath, [program], { env }),
  )
  const seen = (await Promise.all(runs)).map(({ stdout }) => JSON.parse(stdout) as Seen)
  return {
    statuses: seen.map(({ statuses }) => Object.keys(statuses)),
    /** The part of a time that the machine left to the calls, on average. It delays a call twice: at the store, and on the way to the origin. */
    running(from: number, to: number) {
      const stalled = seen
        .flatMap(({ stalls }) => stalls)
        .filter((stall) => stall.from >= from && stall.from < to)
      const stalledMs = stalled.reduce((sum, { ms }) => sum + ms, 0) / PROCESSES
      return Math.max(0, 1 - (2 * stalledMs) / (to - from))
    },
  }
}

async function startOrigin() {
  const origin = await limitedOrigin()
  onTestFinished(() => origin.close())
  return origin
}

test('In 30 seconds there is no 429, and at least 97 % of the limit is used while the machine is not busy.', async () => {
  const origin = await startOrigin()
  const { statuses, running } = await callers(origin.url, Date.now() + 33_000, 'constant')
  expect(origin.arrivals.filter(({ status }) => status === 429)).toEqual([])
  expect(statuses).toEqual(Array(PROCESSES).fill(['200']))
  // The processes start one after the other.
  const from = origin.arrivals[0]!.at + 2_000
  const counted = origin.arrivals.filter(({ at }) => at >= from && at < from + 28_000).length
  expect(counted).toBeGreaterThanOrEqual(0.97 * 28 * 50 * running(from, from + 28_000))
  expect(counted).toBeLessThanOrEqual(28 * 50 + 5)
}, 120_000)

test('If the limit is cut in half, there is at most one 429 for each caller, and then none.', async () => {
  const origin = await startOrigin()
  const begun = Date.now()
  setTimeout(() => {
    origin.limits.requests = 25
  }, 10_000)
  const { running } = await callers(origin.url, begun + 25_000, 'halved')
  const refused = origin.arrivals.filter(({ status }) => status === 429)
  expect(refused.length).toBeLessThanOrEqual(64)
  expect(refused.filter(({ at }) => at < begun + 10_000 || at > begun + 14_000)).toEqual([])
  const later = origin.arrivals.filter(({ at }) => at >= begun + 15_000 && at < begun + 24_000)
  const whole = 9 * 25 * running(begun + 15_000, begun + 24_000)
  expect(later.length).toBeGreaterThanOrEqual(0.97 * whole)
}, 120_000)
