import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { countBytes } from '../cost/bytes.ts'
import { countCommands } from '../cost/commands.ts'
import type { Contender } from '../cost/contender.ts'
import { hono } from '../cost/hono.ts'
import { ours } from '../cost/ours.ts'
import { peer } from '../cost/peer.ts'
import { type BenchServer, openServer } from '../server.ts'

const find = (contenders: Contender[], start: string) =>
  contenders.find(({ algorithm }) => algorithm.startsWith(start))!

// Others would be counted too on a Redis that is not ours alone.
describe.skipIf(process.env.REDIS_URL)('what a decision costs', () => {
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
  ])('%s: as many commands as docs/explanation/algorithms.md says', async (name, commands) => {
    const contender = find(ours, name)
    expect(await countCommands(server, contender)).toEqual(commands)
    const row = `| Sluice | ${contender.algorithm} | ${Object.values(commands).join(' | ')} |`
    expect(
      await readFile(new URL('../../docs/explanation/algorithms.md', import.meta.url), 'utf8'),
    ).toContain(row)
  })

  test.each([
    ['fixed window', 120],
    ['sliding window', 120],
    ['token bucket', 120],
    ['three limits', 200],
  ])('%s: a client leaves no more than %i bytes', async (name, most) => {
    const { ipv4, ipv6 } = await countBytes(server, find(ours, name))
    expect(Math.max(ipv4, ipv6)).toBeLessThanOrEqual(most)
  })

  test.each([
    ['fixed window', { first: 3, admitted: 2, refused: 2, peek: 2 }],
    ['sliding window', { first: 5, admitted: 4, refused: 3, peek: 3 }],
    ['token bucket', { first: 4, admitted: 4, refused: 2, peek: 2 }],
  ])('%s of the peer: as many commands as its own documentation says', async (name, commands) => {
    expect(await countCommands(server, find(peer, name))).toEqual(commands)
  })

  test('hono-rate-limiter: an expiry is read each time, and set the first', async () => {
    const commands = { first: 4, admitted: 3, refused: 3, peek: 3 }
    expect(await countCommands(server, hono)).toEqual(commands)
    expect((await countBytes(server, hono)).ipv4).toBeGreaterThan(0)
  })
})
