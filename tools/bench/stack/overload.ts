/** Scenarios in which one client floods a cold isolate with default settings, for test/faults/overload.test.ts. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import type { FloodOrder } from './load/order.ts'

export const LIMIT = 50
/** Requests per second of two other clients: one stays within its limit during a run, the other exceeds it. */
export const OTHERS = [2, 6]

const main: PolicyOptions = { name: 'main', algorithm: 'fixed-window', limit: LIMIT, window: '1d' }

export interface Scenario {
  policies: PolicyOptions[]
  request?: Pick<FloodOrder, 'vary'>
  /** Response time of the origin, in ms. */
  originMs?: number
  /** True if the flooding client is the only client, since all clients would share one quota. */
  alone?: boolean
}

export const scenarios: Record<string, Scenario> = {
  default: { policies: [main] },
  // A second policy by a query parameter that differs in each request.
  query: {
    policies: [main, { ...main, name: 'by-query', key: 'query:q', onMissingKey: 'skip' }],
    request: { vary: 'query' },
  },
  penalty: { policies: [{ ...main, penalty: { after: 100_000, within: '1d', ban: '1m' } }] },
  countOnly: { policies: [{ ...main, countOnly: 200 }] },
  // A global limit, and a policy by a header that differs in each request.
  global: {
    policies: [
      { ...main, name: 'by-header', key: 'header:x-key' },
      { ...main, key: 'global' },
    ],
    request: { vary: 'header' },
    alone: true,
  },
  'slow-origin': { policies: [main], originMs: 1000 },
}

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
