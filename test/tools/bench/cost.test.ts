import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { countBytes } from '../../../tools/bench/cost/bytes.ts'
import { countCommands } from '../../../tools/bench/cost/commands.ts'
import type { Contender } from '../../../tools/bench/cost/contender.ts'
import { floor } from '../../../tools/bench/cost/floor.ts'
import { hono } from '../../../tools/bench/cost/hono.ts'
import { ours } from '../../../tools/bench/cost/ours.ts'
import { peer } from '../../../tools/bench/cost/peer.ts'
import { type BenchServer, openServer } from '../../../tools/bench/server.ts'

const find = (contenders: Contender[], start: string) =>
  contenders.find(({ algorithm }) => algorithm.startsWith(start))!

// With REDIS_URL the commands of other clients would be counted too.
describe.skipIf(process.env.REDIS_URL)('the cost of a decision', () => {
  let server: BenchServer
  beforeAll(async () => {
    server = await openServer()
  })
  afterAll(() => server?.stop())
  beforeEach(() => server.send('FLUSHALL'))

  test.each([
    ['fixed window', { first: 4, admitted: 4, refused: 3, peek: 3 }],
    ['sliding window', { first: 4, admitted: 4, refused: 3, peek: 3 }],
    ['sliding log', { first: 6, admitted: 8, refused: 5, peek: 5 }],
    ['token bucket', { first: 4, admitted: 4, refused: 3, peek: 3 }],
    ['three limits', { first: 4, admitted: 4, refused: 3, peek: 3 }],
    ['16 requests', { first: 19, admitted: 19, refused: 3, peek: 3 }],
  ])(
    'Sluice, %s, uses the number of commands in tools/bench/RESULTS.md.',
    async (name, commands) => {
      const contender = find(ours, name)
      expect(await countCommands(server, contender)).toEqual(commands)
      const row = `| Sluice | ${contender.algorithm} | ${Object.values(commands).join(' | ')} |`
      expect(
        await readFile(new URL('../../../tools/bench/RESULTS.md', import.meta.url), 'utf8'),
      ).toContain(row)
    },
  )

  test.each([
    ['fixed window', 120],
    ['sliding window', 120],
    ['token bucket', 120],
    ['three limits', 200],
  ])('With the algorithm %s a client uses at most %i bytes in Redis.', async (name, most) => {
    const { ipv4, ipv6 } = await countBytes(server, find(ours, name))
    expect(Math.max(ipv4, ipv6)).toBeLessThanOrEqual(most)
  })

  test.each([
    ['fixed window', { first: 3, admitted: 2, refused: 2, peek: 2 }],
    ['sliding window', { first: 5, admitted: 4, refused: 3, peek: 3 }],
    ['token bucket', { first: 4, admitted: 4, refused: 2, peek: 2 }],
  ])(
    '@upstash/ratelimit, %s, uses the number of commands in its documentation.',
    async (name, commands) => {
      expect(await countCommands(server, find(peer, name))).toEqual(commands)
    },
  )

  test('The floor reads the clock and one record, and writes it only if it admits.', async () => {
    const commands = { first: 4, admitted: 4, refused: 3, peek: 4 }
    expect(await countCommands(server, floor)).toEqual(commands)
  })

  test('hono-rate-limiter reads the expiry in each request and sets it in the first.', async () => {
    const commands = { first: 4, admitted: 3, refused: 3, peek: 3 }
    expect(await countCommands(server, hono)).toEqual(commands)
    expect((await countBytes(server, hono)).ipv4).toBeGreaterThan(0)
  })
})
