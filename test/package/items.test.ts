/** Small features, each tried as its user would: from the packed package, in one new project. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { installConsumer, runIn } from './support/consumer.ts'

let folder: string
/** What the program has seen, by feature. */
// biome-ignore lint/suspicious/noExplicitAny: each test knows its part
let seen: Record<string, any>

/** A log of 60 clients with three requests in a minute, one with 34, and one with 1555. */
function accessLog() {
  const line = (client: string, second: number) =>
    `${client} - - [17/May/2026:10:00:${String(second).padStart(2, '0')} +0000] "GET / HTTP/1.1" 200 512`
  const lines: string[] = []
  const send = (client: string, requests: number) => {
    for (let n = 0; n < requests; n++) lines.push(line(client, Math.floor((n * 60) / requests)))
  }
  for (let n = 1; n <= 60; n++) send(`198.51.100.${n}`, 3)
  send('203.0.113.34', 34)
  send('203.0.113.155', 1555)
  return lines
    .sort((a, b) => (a.slice(a.indexOf('[')) < b.slice(b.indexOf('[')) ? -1 : 1))
    .join('\n')
}

beforeAll(async () => {
  const redis = await borrowRedis()
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  try {
    const program = await readFile(new URL('support/items.mjs', import.meta.url), 'utf8')
    folder = await installConsumer({
      packages: [
        'hono@4.13.19',
        'express@5.3.0',
        'express-rate-limit@8.7.5',
        'better-auth@1.7.25',
        '@modelcontextprotocol/client@2.4.0',
        '@nestjs/throttler@6.7.1',
        '@nestjs/common@12.5.1',
        '@nestjs/core@12.5.1',
        'reflect-metadata@0.2.2',
        'rxjs@7.8.2',
      ],
      files: {
        'package.json': '{ "type": "module" }',
        'main.mjs': program,
        'access.log': accessLog(),
      },
    })
    const output = await runIn(folder, process.execPath, ['main.mjs'], {
      UPSTASH_REDIS_REST_URL: bridge.url,
      UPSTASH_REDIS_REST_TOKEN: bridge.token,
    })
    seen = JSON.parse(output.trim().split('\n').at(-1)!)
  } finally {
    await bridge.close()
    await redis.stop()
  }
}, 300_000)
afterAll(() => folder && rm(folder, { recursive: true, force: true }))

test('Input and output tokens have weights: 1000 and 100 cost 300.', () => {
  expect(seen.weights).toBe(10_000 - 300 - 4000)
})

test('Of 20 streams of 900 tokens on a budget of 10,000, eleven end whole and nine are refused.', () => {
  expect(seen.streams).toEqual({ whole: 11, refused: 9 })
})

test('The fourth equal call of a tool is refused, in whatever order its arguments are.', () => {
  expect(seen.loops).toEqual([200, 200, 200, 429, 200])
})

test('A client library of MCP reads a refused call as an error of JSON-RPC.', () => {
  expect(seen.refusals).toEqual({
    content: [{ type: 'text', text: 'found' }],
    code: -32005,
    violated: ['calls'],
  })
})

test('A client reads what is left, and reading charges nothing.', () => {
  expect(seen.quota).toEqual({ policy: 'per-ip', remaining: 9 })
})

test('The third different name is refused, and known names cost nothing.', () => {
  expect(seen.distinct).toEqual([200, 200, 200, 429, 200])
})

test('A download in chunks costs its bytes.', () => {
  expect(seen.bytes).toEqual({ remaining: 15_000, unit: 'content-bytes' })
})

test('trustedProxies mixes the networks of Cloudflare with those of a list.', () => {
  expect(seen.proxies).toEqual([200, 200, 200, 429])
})

test('Operators list who is banned, and unban it.', () => {
  expect(seen.bans).toMatchObject({ refused: 429, total: 1, after: 0 })
  expect(seen.bans.bannedForMs).toBeGreaterThan(3_500_000)
})

test('With jitter the waits differ, and none is shorter than the exact one.', () => {
  expect(new Set(seen.jitter).size).toBeGreaterThan(1)
  expect(Math.min(...seen.jitter)).toBeGreaterThan(3_500_000)
  expect(Math.max(...seen.jitter)).toBeGreaterThan(3_600_000)
})

test('Better Auth, express-rate-limit and Nest count in Redis.', () => {
  expect(seen.adapters).toEqual({
    auth: [401, 401, 401, 429],
    express: [200, 429],
    nest: [true, 429],
  })
})

test('replay --suggest proposes a limit inside the gap of a log, and says whom it would refuse.', async () => {
  const sluice = join(folder, 'node_modules/.bin/sluice')
  const output = await runIn(folder, sluice, ['replay', 'access.log', '--suggest', 'per-ip'])
  expect(output).toContain('gap between 34 and')
  expect(output).toContain('203.0.113.155')
  const unitsOf = (text = '') => Number(text.replaceAll('_', ''))
  const [, limit] = /\{ name: 'per-ip.*?limit: ([\d_]+)/s.exec(output) ?? []
  expect(unitsOf(limit)).toBeGreaterThan(34)
  expect(unitsOf(limit)).toBeLessThan(1555)
})
