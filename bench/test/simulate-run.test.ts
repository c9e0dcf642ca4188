import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BenchServer, openServer } from '../server.ts'
import { simulate } from '../simulate/run.ts'
import { ways, worldsUpTo } from '../simulate/worlds.ts'

let server: BenchServer
beforeAll(async () => {
  server = await openServer()
})
afterAll(() => server.stop())

const world = { isolates: 6, colos: 3, rps: 1500, seconds: 2 }

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
    expect(decisions).toBeGreaterThan(2500)
    expect(over).toBe(0)
    if (way.lease) expect(under).toBeLessThan(0.1)
    else expect(under).toBe(0)
    if (way.batching) expect(calls).toBeLessThan(0.9)
    else expect(calls).toBe(1)
    expect(billed).toBeGreaterThan(0.05)
    expect(billed).toBeLessThan(4.1)
  },
)

test('Two simulations of the same world give the same results.', async () => {
  const [first, second] = [
    await simulate(world, ways[0]!, server),
    await simulate(world, ways[0]!, server),
  ]
  expect(second).toEqual(first)
})
