/** What an operator reads while Redis does not decide, by a clock that the test moves: readiness, counts and metrics agree at each moment. */
import { expect, onTestFinished, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import type { Stats } from '../../../src/features/observe/report.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { apiTokens, OPERATE } from '../../support/api-stack.ts'
import { startFaults } from '../../support/fault-proxy/index.ts'
import { useGateway } from '../../support/gateway.ts'

const DEADLINE = 40
const config: ConfigOptions = {
  // On a busy machine a healthy call may need longer, and is then a fallback as an operator would count it.
  deadline: DEADLINE,
  policies: [{ name: 'a', limit: 100_000, window: '1d' }],
}
/** A clock that only the test moves: an isolate that is busy, and whose timers fire late, does not count a timeout as a failure. */
const clock = new (class extends TestClock {
  readonly #start = Date.now()
  override now() {
    return this.#start + this.offsetMs
  }
})()
const gateway = useGateway({ config, clock })

async function start() {
  const faults = await startFaults({ target: gateway.bridge.url })
  const env = { ...apiTokens, UPSTASH_REDIS_REST_URL: faults.url }
  const isolate = gateway.start(config, { env, observe: {} })
  onTestFinished(async () => {
    await faults.close()
    await isolate.settled()
  })
  const read = (path: string) =>
    isolate.fetch(path, { headers: { authorization: `Bearer ${OPERATE}` } })
  /** Whether the database decides, as each report says. */
  async function reports() {
    const [ready, counts, metrics] = await Promise.all(
      ['ready', 'v1/stats', 'v1/metrics'].map((path) => read(`/_sluice/${path}`)),
    )
    const stats = (await counts!.json()) as Stats
    const { problems = [] } = (await ready!.json()) as { problems?: { since: number }[] }
    const text = await metrics!.text()
    const saysOpen = [
      ready!.status === 503,
      stats.circuit === 'open',
      stats.openSince !== undefined,
      /^sluice_circuit_open 1$/m.test(text),
    ]
    expect(problems[0]?.since).toBe(stats.openSince)
    const [, answered] = /^sluice_store_answered_timestamp_seconds ([\d.]+)$/m.exec(text) ?? []
    expect(Number(answered) * 1000).toBeCloseTo(stats.answeredAt ?? Number.NaN)
    return { saysOpen: new Set(saysOpen), stats }
  }
  /** Sends a request. @returns true if Redis has decided it */
  const isDecided = async () => (await isolate.fetch('/')).headers.has('ratelimit')
  return { faults, isolate, isDecided, reports }
}

/**
 * Sends a request each 1.4 s until Redis decides one. On a busy machine a healthy call may miss the deadline, too.
 * @returns how many requests Redis did not decide
 */
async function recovered(isDecided: () => Promise<boolean>) {
  let missed = 0
  for (; !(await isDecided()); missed += 1) {
    expect(missed).toBeLessThan(40)
    clock.advance(1_400)
  }
  return missed
}

test.each(
  (['hang', 'refuse', `late=${DEADLINE + 300}`] as const).flatMap((fault) =>
    [1_400, 20].map((gapMs) => [fault, gapMs] as const),
  ),
)(
  'With the fault %s and a request each %d ms, all reports say that the circuit is open from its opening until Redis decides again.',
  async (fault, gapMs) => {
    const { faults, isolate, isDecided, reports } = await start()
    await recovered(isDecided)
    const before = await reports()
    expect(before.saysOpen).toEqual(new Set([false]))
    expect(before.stats.answeredAt).toBe(clock.now())
    const openings = () => isolate.events().filter((event) => event === 'breaker-opened').length
    const earlier = openings()

    await faults.set(fault)
    const next = async () => {
      clock.advance(gapMs)
      expect(await isDecided()).toBe(false)
    }
    while (openings() === earlier) await next()
    const { openSince, answeredAt, failure } = (await reports()).stats
    expect(failure).toBe(fault === 'refuse' ? 'unreachable' : 'timeout')
    for (let sent = 0; sent < 12; sent += 1) {
      await next()
      const { saysOpen, stats } = await reports()
      expect([saysOpen, stats.openSince]).toEqual([new Set([true]), openSince])
      expect(stats.answeredAt).toBe(answeredAt)
    }
    const during = (await reports()).stats
    expect(during.answeredAt).toBe(before.stats.answeredAt)
    expect(during.lastMinute.fallbacks).toBe(during.fallbacks)
    expect(during.lastMinute.decisions).toBe(
      during.total.series.reduce((sum, { decisions }) => sum + decisions, 0),
    )

    await faults.set(null)
    clock.advance(1_400)
    await recovered(isDecided)
    expect(openings()).toBe(earlier + 1)
    const after = await reports()
    expect(after.saysOpen).toEqual(new Set([false]))
    expect(after.stats.answeredAt).toBeGreaterThan(before.stats.answeredAt!)
    clock.advance('70s')
    const missed = await recovered(isDecided)
    expect((await reports()).stats.lastMinute.fallbacks).toBe(missed)
  },
)
