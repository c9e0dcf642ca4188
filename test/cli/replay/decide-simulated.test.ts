import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPrivateRedis, type PrivateRedis } from '../../../cli/replay/decide/private-redis.ts'
import type { LogLine } from '../../../cli/replay/line.ts'
import { type BenchServer, openServer } from '../../../tools/bench/server.ts'
import { policiesOf, type SimulatedDecision, simulate } from '../../../tools/bench/simulate/run.ts'
import { ways } from '../../../tools/bench/simulate/worlds.ts'
import { replay } from '../../support/replay.ts'

let server: BenchServer
let redis: PrivateRedis
beforeAll(async () => {
  server = await openServer()
  redis = await openPrivateRedis()
})
afterAll(() => Promise.all([server.stop(), redis.stop()]))

const world = { isolates: 6, colos: 3, rps: 1500, seconds: 3 }

test('A replay of the traffic of the simulator decides each request as the simulator did.', async () => {
  const decisions: SimulatedDecision[] = []
  await simulate(world, ways[0]!, server, (decision) => decisions.push(decision))
  // The database decides in the order of arrival, half a round trip after a request was sent.
  const arrived = ({ sent, answered }: SimulatedDecision) => sent + answered
  decisions.sort((one, other) => arrived(one) - arrived(other))
  const refused = decisions.filter(({ allowed }) => !allowed)
  expect(decisions.length).toBeGreaterThan(3500)
  expect(refused.length).toBeGreaterThan(500)

  const lines = decisions.map(({ name, at }): LogLine => {
    return { time: at, method: 'GET', target: '/', headers: { 'x-user': name } }
  })
  const [perTenant, perClient] = policiesOf(world.rps)
  const key = 'header:x-user'
  const policies = [
    { ...perTenant, key, match: { header: { 'x-user': 'tenant-*' } } } as const,
    { ...perClient, key, match: { header: { 'x-user': 'client-*' } } } as const,
  ]
  for (const engine of [{}, { redis }]) {
    const decided = await replay({ policies }, lines, engine)
    expect(decided.map(({ spread }) => spread.allowed)).toEqual(
      decisions.map(({ allowed }) => allowed),
    )
  }
})
