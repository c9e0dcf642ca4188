/** An origin that enforces limits in requests and tokens, and answers 429 beyond. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Arrival {
  at: number
  status: 200 | 429
}

export async function limitedOrigin({ requests = 50, tokens = 1_000 } = {}) {
  const arrivals: Arrival[] = []
  const limits = { requests }
  /** What is left of each second, which flows back all the time. */
  let left = { requests, tokens: 10 * tokens, at: Date.now() }
  const server = createServer(async (request, response) => {
    request.resume()
    const now = Date.now()
    const seconds = (now - left.at) / 1000
    left = {
      requests: Math.min(limits.requests, left.requests + seconds * limits.requests),
      tokens: Math.min(10 * tokens, left.tokens + seconds * tokens),
      at: now,
    }
    const used = 14 + (arrivals.length % 5)
    const isAllowed = left.requests >= 1 && left.tokens >= used
    if (isAllowed) {
      left.requests -= 1
      left.tokens -= used
    }
    arrivals.push({ at: now, status: isAllowed ? 200 : 429 })
    response.writeHead(isAllowed ? 200 : 429, {
      'Content-Type': 'application/json',
      'RateLimit-Policy': `"requests";q=${limits.requests};w=1`,
      RateLimit: `"requests";r=${Math.floor(left.requests)};t=1`,
      ...(!isAllowed && { 'Retry-After': '1' }),
    })
    // A model answers after a while.
    setTimeout(() => response.end(JSON.stringify({ usage: { total_tokens: used } })), 100)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    arrivals,
    limits,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
