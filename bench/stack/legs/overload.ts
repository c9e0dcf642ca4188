/** One client floods a cold isolate with default settings. Counts the requests that reach the origin, and the responses to other clients. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PolicyOptions } from '../../../src/config/options.ts'
import { startFarRedis } from '../bridge.ts'
import { type ClientOutcome, FLOOD_ADDRESS, type FloodOrder } from '../load/order.ts'
import type { Stack } from '../run.ts'

export const LIMIT = 50
/** Requests per second of two other clients: one stays within its limit during a run, the other exceeds it. */
export const OTHERS = [2, 6]

const main: PolicyOptions = { name: 'main', algorithm: 'fixed-window', limit: LIMIT, window: '1d' }

export interface Scenario {
  title: string
  policies: PolicyOptions[]
  request?: Pick<FloodOrder, 'vary' | 'bodyBytes'>
  /** Response time of the origin, in ms. */
  originMs?: number
  /** True if the flooding client is the only client, since all clients would share one quota. */
  alone?: boolean
}

export const scenarios: Record<string, Scenario> = {
  default: { title: 'one policy, all defaults', policies: [main] },
  query: {
    title: 'a second policy by a query parameter, different in each request',
    policies: [main, { ...main, name: 'by-query', key: 'query:q', onMissingKey: 'skip' }],
    request: { vary: 'query' },
  },
  penalty: {
    title: 'with a penalty',
    policies: [{ ...main, penalty: { after: 100_000, within: '1d', ban: '1m' } }],
  },
  countOnly: { title: 'countOnly: 200', policies: [{ ...main, countOnly: 200 }] },
  global: {
    title: 'a global limit, and a policy by a header, different in each request',
    policies: [
      { ...main, name: 'by-header', key: 'header:x-key' },
      { ...main, key: 'global' },
    ],
    request: { vary: 'header' },
    alone: true,
  },
  'slow-origin': { title: 'an origin that takes 1 s', policies: [main], originMs: 1000 },
  bodies: { title: 'request bodies of 100 KB', policies: [main], request: { bodyBytes: 100_000 } },
}

/** Numbers of connections of the flooding client. */
export const sizes = [64, 256, 700, 1000, 2000]

export interface Overload {
  scenario: string
  connections: number
  /** Requests of the flooding client that reached the origin. */
  passed: number
  passedAfterRefusal: number
  flood: ClientOutcome
  others: ClientOutcome[]
}

export interface OverloadOptions {
  seconds: number
  log: (line: string) => void
  /** Ids of the scenarios. Defaults to all. */
  scenarios?: string[] | undefined
}

export async function measureOverload(
  { server, load, workers }: Stack,
  { seconds, log, scenarios: wanted }: OverloadOptions,
): Promise<Overload[]> {
  const results: Overload[] = []
  const far = await startFarRedis(server.url, 1)
  try {
    for (const [id, scenario] of Object.entries(scenarios)) {
      if (wanted?.includes(id) === false) continue
      for (const connections of sizes) {
        await server.send('FLUSHALL')
        const origin = await startCountingOrigin(scenario.originMs)
        const settings = { policies: scenario.policies, origin: origin.url }
        const isolate = await workers.start('overload', [], far, settings)
        try {
          const outcome = await load.flood({
            port: isolate.port,
            connections,
            ms: seconds * 1000,
            ...scenario.request,
            others: scenario.alone ? [] : OTHERS,
          })
          const result = {
            scenario: id,
            connections,
            passed: origin.requestsOf(FLOOD_ADDRESS),
            ...outcome,
          }
          results.push(result)
          log(`overload: ${summary(result)}`)
        } finally {
          await isolate.stop()
          origin.close()
        }
      }
    }
  } finally {
    await far.stop()
  }
  return results
}

export const summary = ({
  scenario,
  connections,
  passed,
  passedAfterRefusal,
  flood,
  others,
}: Overload) =>
  [
    `${scenario}, ${connections} connections: ${passed} admitted (${passedAfterRefusal} by a fallback after a refusal)`,
    `${flood.refused} refused, ${flood.failed} failed`,
    ...others.map(
      (one) =>
        `another client: ${one.passed} admitted, ${one.refused} refused, ${one.failed} failed, ${one.fallbacks} by a fallback, for at most ${one.longestFallbackMs.toFixed(0)} ms without Redis`,
    ),
  ].join('; ')

/** Starts an origin that counts requests by client (X-Forwarded-For). */
export async function startCountingOrigin(delayMs = 0) {
  const requests = new Map<string, number>()
  const server = createServer((request, response) => {
    const client = String(request.headers['x-forwarded-for'])
    requests.set(client, (requests.get(client) ?? 0) + 1)
    request.resume()
    setTimeout(() => response.end('ok'), delayMs)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestsOf: (client: string) => requests.get(client) ?? 0,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
