import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAnonymizer, writeLine } from '../../../cli/replay/anonymize.ts'
import type { LogLine } from '../../../cli/replay/line.ts'
import { openLog } from '../../../cli/replay/read/open.ts'
import { formatAddress, network, parseAddress } from '../../../src/core/base/ip.ts'
import { logLines } from '../../support/log-lines.ts'

const key = new Uint8Array(32).fill(7)
const request = (ip: string): LogLine => ({
  time: Date.UTC(2024, 0),
  ip,
  method: 'GET',
  target: '/',
})

/** Addresses of which many have a common network. */
const byte = fc.constantFrom(0, 1, 2, 127, 255)
const addresses = fc
  .oneof(
    fc.array(byte, { minLength: 4, maxLength: 4 }),
    fc
      .array(byte, { minLength: 16, maxLength: 16 })
      .map(([first, ...rest]) => [first! | 32, ...rest]),
  )
  .map((bytes) => formatAddress(bytes))

const networkOf = (ip: string, v4: number, v6: number) => network(parseAddress(ip)!, v4, v6)

/** The requests that a fixed window refuses to clients, by an independent count. */
function refused(lines: LogLine[], limit: number): boolean[] {
  const counts = new Map<string, number>()
  return lines.map(({ ip, time }) => {
    const name = `${networkOf(ip!, 32, 64)} ${Math.floor(time / 60_000)}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
    return counts.get(name)! > limit
  })
}

describe('Anonymous logs', () => {
  test('Addresses that differ stay different, and neighbours stay neighbours.', () => {
    const anonymize = createAnonymizer(key)
    fc.assert(
      fc.property(addresses, addresses, (one, other) => {
        const [a, b] = [anonymize(request(one)).ip!, anonymize(request(other)).ip!]
        expect(a === b).toBe(one === other)
        for (const [v4, v6] of [
          [24, 48],
          [32, 64],
        ] as const) {
          expect(networkOf(a, v4, v6) === networkOf(b, v4, v6)).toBe(
            networkOf(one, v4, v6) === networkOf(other, v4, v6),
          )
        }
      }),
      { numRuns: 300 },
    )
  })

  test('All addresses of a /24 become all addresses of one other /24.', () => {
    const anonymize = createAnonymizer(key)
    const all = Array.from({ length: 256 }, (_, last) => anonymize(request(`192.0.2.${last}`)).ip!)
    expect(new Set(all).size).toBe(256)
    expect(new Set(all.map((ip) => networkOf(ip, 24, 48))).size).toBe(1)
    expect(all[0]).not.toMatch(/^192\.0\.2\./)
  })

  test('Each run has a key of its own.', () => {
    const [first, second] = [createAnonymizer(), createAnonymizer()]
    const addresses = Array.from({ length: 8 }, (_, index) => request(`198.51.${index}.7`))
    expect(addresses.map((line) => first(line).ip)).not.toEqual(
      addresses.map((line) => second(line).ip),
    )
  })

  test('The log has no query, user agent, referrer, header or original address.', async () => {
    const line: LogLine = {
      ...request('203.0.113.77'),
      target: '/path?token=secret-query',
      host: 'example.com',
      status: 429,
      userAgent: 'secret-agent',
      referer: 'https://secret-referrer',
      country: 'DE',
      asn: '64512',
      colo: 'FRA',
      headers: { 'x-user': 'secret-user' },
    }
    const text = writeLine(createAnonymizer(key)(line))
    expect(text).not.toMatch(/secret|203\.0\.113/)
    expect(JSON.parse(text)).toEqual({
      time: '2024-01-01T00:00:00.000Z',
      client_ip: expect.any(String),
      method: 'GET',
      path: '/path',
      host: 'example.com',
      status: 429,
      country: 'DE',
      asn: '64512',
      colo: 'FRA',
    })
  })

  test('An anonymous log is read without options, and has the same refusals by address.', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-anonymous-'))
    const clients = fc.array(fc.tuple(logLines, addresses, fc.integer({ min: 0, max: 100_000 })), {
      minLength: 1,
      maxLength: 60,
    })
    try {
      await fc.assert(
        fc.asyncProperty(clients, async (all) => {
          const lines = all
            .map(([line, ip, after]) => ({ ...line, ip, time: Date.UTC(2024, 0) + after }))
            .sort((a, b) => a.time - b.time)
          const name = join(folder, 'anonymous.log')
          await writeFile(name, lines.map(createAnonymizer()).map(writeLine).join(''))
          const log = await openLog([name])
          const read: LogLine[] = []
          for await (const list of log.lines()) read.push(...list)
          expect(refused(read, 3)).toEqual(refused(lines, 3))
          expect(log.facts).not.toContain('query')
          expect(read.map(({ host, method, status }) => [host, method, status])).toEqual(
            lines.map(({ host, method, status }) => [host, method, status]),
          )
        }),
        { numRuns: 50 },
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
