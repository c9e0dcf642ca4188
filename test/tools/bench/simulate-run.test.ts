import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BenchServer, openServer } from '../../../tools/bench/server.ts'
import { mastersText } from '../../../tools/bench/simulate/report.ts'
import { simulate } from '../../../tools/bench/simulate/run.ts'
import { ways, worldsUpTo } from '../../../tools/bench/simulate/worlds.ts'

let server: BenchServer
beforeAll(async () => {
  server = await openServer()
})
afterAll(() => server.stop())

const world = { isolates: 6, colos: 3, rps: 1500, seconds: 1 }

test('Smaller worlds differ by factors of ten and have the same rate per isolate.', () => {
  expect(worldsUpTo({ isolates: 1000, colos: 200, rps: 1_000_000, seconds: 3 })).toEqual([
    { isolates: 1, colos: 1, rps: 1000, seconds: 3 },
    { isolates: 10, colos: 2, rps: 10_000, seconds: 3 },
    { isolates: 100, colos: 20, rps: 100_000, seconds: 3 },
    { isolates: 1000, colos: 200, rps: 1_000_000, seconds: 3 },
  ])
})

test.each(ways)(
  'In the mode "$name" no limit is exceeded, and little of the quota is unused.',
  async (way) => {
    const { over, under, calls, billed, decisions } = await simulate(world, way, server)
    expect(decisions).toBeGreaterThan(1250)
    expect(over).toBe(0)
    if (way.lease) expect(under).toBeLessThan(0.1)
    else expect(under).toBe(0)
    if (way.batching) expect(calls).toBeLessThan(0.9)
    else expect(calls).toBe(1)
    expect(billed).toBeGreaterThan(0.05)
    expect(billed).toBeLessThan(4.1)
  },
)

test('In a cluster each subject has one master, and no call has several slots.', async () => {
  const { loads, calls, over, under, decisions } = await simulate(
    { ...world, masters: 3 },
    ways[1]!,
    server,
  )
  expect([over, under]).toEqual([0, 0])
  expect(calls).toBeLessThan(0.9) // one HTTP request carries the calls of all slots
  const sum = (read: (load: (typeof loads)[0]) => number) =>
    loads.map(read).reduce((one, other) => one + other, 0) * world.seconds
  // The denial cache answers the others.
  expect(sum((load) => load.decisions)).toBeGreaterThan(0.7 * decisions)
  expect(sum((load) => load.decisions)).toBeLessThanOrEqual(decisions)
  expect(sum((load) => load.runs)).toBeGreaterThan(calls * decisions)
  expect(Math.min(...loads.map(({ runs }) => runs))).toBeGreaterThan(0)
})

test('Decisions are the same with and without a cluster.', async () => {
  const outcomes = async (masters?: number) => {
    const all: string[] = []
    const one = { ...world, ...(masters && { masters }) }
    await simulate(one, ways[1]!, server, ({ name, allowed, sent }) => {
      all.push(`${sent} ${name} ${allowed}`)
    })
    return all.sort()
  }
  expect(await outcomes(12)).toEqual(await outcomes())
})

test('The report shows the load of each master, and how uneven it is.', async () => {
  const result = await simulate(world, ways[0]!, server)
  expect(mastersText([result])).toBe('')
  const loads = [300, 100, 200].map((runs) => ({ runs, decisions: 2 * runs }))
  expect(
    mastersText([{ ...result, loads }])
      .split('\n')
      .at(-1),
  ).toBe('| 6 | 1500 | one call per decision | 3 | 400 | 200 | 300 | 1.50 × | 150 %, 50 %, 100 % |')
})

test('Two simulations of the same world give the same results.', async () => {
  const [first, second] = [
    await simulate(world, ways[0]!, server),
    await simulate(world, ways[0]!, server),
  ]
  expect(second).toEqual(first)
})
