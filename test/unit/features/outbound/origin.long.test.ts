/** 64 callers in four processes keep to the limits of one origin. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { limitedOrigin } from '../../../support/limited-origin.ts'
import { useOutbound } from '../../../support/outbound.ts'

const stack = useOutbound()
const program = fileURLToPath(new URL('../../../support/outbound-callers.ts', import.meta.url))
const PROCESSES = 4

/** Runs the callers until a time. Returns the statuses that they have seen. */
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
  return (await Promise.all(runs)).map(({ stdout }) => JSON.parse(stdout) as object)
}

async function startOrigin() {
  const origin = await limitedOrigin()
  onTestFinished(() => origin.close())
  return origin
}

test('In 30 seconds there is no 429, and at least 97 % of the limit is used.', async () => {
  const origin = await startOrigin()
  const statuses = await callers(origin.url, Date.now() + 33_000, 'constant')
  expect(origin.arrivals.filter(({ status }) => status === 429)).toEqual([])
  expect(statuses.map((seen) => Object.keys(seen))).toEqual(Array(PROCESSES).fill(['200']))
  // The processes start one after the other.
  const from = origin.arrivals[0]!.at + 2_000
  const counted = origin.arrivals.filter(({ at }) => at >= from && at < from + 28_000).length
  expect(counted).toBeGreaterThanOrEqual(0.97 * 28 * 50)
  expect(counted).toBeLessThanOrEqual(28 * 50 + 5)
}, 120_000)

test('If the limit is cut in half, there is at most one 429 for each caller, and then none.', async () => {
  const origin = await startOrigin()
  const begun = Date.now()
  setTimeout(() => {
    origin.limits.requests = 25
  }, 10_000)
  await callers(origin.url, begun + 25_000, 'halved')
  const refused = origin.arrivals.filter(({ status }) => status === 429)
  expect(refused.length).toBeLessThanOrEqual(64)
  expect(refused.filter(({ at }) => at < begun + 10_000 || at > begun + 14_000)).toEqual([])
  const later = origin.arrivals.filter(({ at }) => at >= begun + 15_000 && at < begun + 24_000)
  expect(later.length).toBeGreaterThanOrEqual(0.97 * 9 * 25)
}, 120_000)
