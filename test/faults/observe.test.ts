/** Destinations that are down, hang or answer errors delay no request. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { Stats } from '../../src/features/observe/index.ts'
import { type Stack, startStack } from '../../tools/stack.ts'
import { OPERATE } from '../support/api-stack.ts'
import { isLong } from '../support/long.ts'
import { SECRET } from '../support/webhook-receiver.ts'

const ROUNDS = isLong ? 250 : 100
const config: ConfigOptions = {
  policies: [{ name: 'a', limit: 100_000, window: '1h', key: 'global' }],
}

/** A server that never answers, and one that answers 500. */
let silent: Server
let failing: Server
let stacks: Record<string, Stack>

const listen = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

beforeAll(async () => {
  silent = createServer(() => {})
  failing = createServer((_, response) => {
    response.statusCode = 500
    response.end()
  })
  const [silentUrl, failingUrl] = [await listen(silent), await listen(failing)]
  const env = { SLUICE_OPERATE_TOKEN: OPERATE, SLUICE_WEBHOOK_SECRET: SECRET }
  const withDestination = (url: string) =>
    startStack({
      config: { policies: [{ ...config.policies[0]!, limit: 500 }] },
      env,
      observe: { to: [`otlp:${url}`], every: '100ms', webhook: { url, thresholds: [1, 2, 3] } },
    })
  stacks = {
    plain: await startStack({ config }),
    hangs: await withDestination(silentUrl),
    ...(isLong && {
      down: await withDestination('http://127.0.0.1:9/'),
      fails: await withDestination(failingUrl),
    }),
  }
}, 120_000)

afterAll(async () => {
  for (const server of [silent, failing]) {
    server?.closeAllConnections()
    server?.close()
  }
  for (const stack of Object.values(stacks ?? {})) await stack.stop()
})

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!

test('Requests do not wait for a destination that is down, hangs or fails.', async () => {
  const names = Object.keys(stacks)
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]]))
  for (let round = 0; round < ROUNDS; round++) {
    // Each round in turn, so that other load on the machine affects all of them alike.
    for (const name of names) {
      const start = performance.now()
      const response = await stacks[name]!.fetch('/')
      await response.arrayBuffer()
      times[name]!.push(performance.now() - start)
      expect(response.status).toBe(200)
    }
  }
  const plain = median(times.plain!)
  for (const name of names) expect(median(times[name]!) - plain, name).toBeLessThan(10) // below 1 ms on a quiet machine
}, 120_000)

test.each(isLong ? ['down', 'hangs', 'fails'] : ['hangs'])(
  'A destination that %s loses reports, which are counted, and no decision.',
  async (name) => {
    const stack = stacks[name]!
    const headers = { Authorization: `Bearer ${OPERATE}` }
    const stats = async () => {
      const response = await stack.fetch('/_sluice/v1/stats', { headers })
      return (await response.json()) as Stats
    }
    const { series } = (await stats()).total
    expect(series.reduce((sum, { decisions }) => sum + decisions, 0)).toBe(ROUNDS)
    const droppedByOtlp = async () =>
      Object.entries((await stats()).dropped).find(([sink]) => sink.startsWith('otlp:'))![1]
    await expect.poll(droppedByOtlp).toBeGreaterThan(0)
  },
)
