/** A flood on a cold isolate with default settings. The limiter keeps working for the flood and for other clients. */
import {
  FLOOD_ADDRESS,
  LIMIT,
  type Load,
  OTHERS,
  scenarios,
  startCountingOrigin,
  startLoad,
} from 'sluice-bench'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'

const SECONDS = isLong ? 5 : 1

let stack: FaultStack
let load: Load
beforeAll(async () => {
  stack = await startFaultStack()
  load = startLoad()
})
afterAll(async () => {
  load.stop()
  await stack.stop()
})

let runs = 0

/** The scenarios and their numbers of connections. */
const floods: [id: keyof typeof scenarios, connections: number][] = isLong
  ? [
      ['default', 1000],
      ['query', 700],
      ['penalty', 256],
      ['countOnly', 700],
      ['global', 700],
      ['slow-origin', 1000],
    ]
  : [['default', 100]]

test.each(floods)(
  'Of a flood (%s, %d connections) at most twice the limit passes, and other clients keep their quotas.',
  async (id, connections) => {
    const { policies, originMs, request, alone } = scenarios[id]!
    const origin = await startCountingOrigin(originMs)
    try {
      const client = { ...request, others: alone ? [] : OTHERS }
      runs += 1 // Redis keeps the counters of a failed run
      const named = policies.map((policy) => ({ ...policy, name: `${id}-${runs}-${policy.name}` }))
      const worker = await stack.renew({ policies: named, origin: origin.url }, stack.bridge.url)
      const port = Number(new URL(worker.directUrl).port)
      const outcome = await load.flood({ port, connections, ms: SECONDS * 1000, ...client })
      expect(origin.requestsOf(FLOOD_ADDRESS)).toBeLessThanOrEqual(2 * LIMIT)
      expect(outcome.passedAfterRefusal).toBe(0)
      expect(outcome.flood.refused).toBeGreaterThan(0)
      // A client below its limit is never refused. A client above it gets at most twice its limit.
      for (const [index, rate] of client.others.entries()) {
        const { passed, refused, failed } = outcome.others[index]!
        expect(failed).toBe(0)
        if (rate * SECONDS <= LIMIT) expect(refused).toBe(0)
        expect(passed).toBeLessThanOrEqual(2 * LIMIT)
      }
    } finally {
      origin.close()
    }
  },
)
