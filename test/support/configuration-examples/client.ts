/** What the examples of docs/reference/configuration.md run on, and a client that sends requests to one of them. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import type { Echo } from '../../../dev/origin.ts'
import type { Stack } from '../../../dev/stack.ts'
import type { Issuer } from '../issuer.ts'

/** The stack and the issuer; the test starts them. */
export const running = {} as { stack: Stack; issuer: Issuer }

export const env = {
  SESSION_SECRET: 'a-secret-of-sessions',
  JWT_SECRET: 'a-secret-of-tokens-of-32-bytes-or-more',
  SLUICE_PROXY_TOKEN: 'a-token-of-a-proxy',
  API_KEYS: createHash('sha256').update('alpha').digest('hex'),
}

export interface Answer {
  status: number
  field: (name: string) => string | undefined
  /** What `RateLimit` says: the name of the policy, and the units left. */
  policy: string | undefined
  left: number | undefined
  /** A problem document, or what the origin saw. */
  body: Partial<Echo> & Record<string, unknown>
}

export interface Asked {
  ip?: string
  /** What Cloudflare knows of the client. */
  cf?: Record<string, unknown>
  headers?: Record<string, string>
}

/** Sends a request to an example: `POST /login`, or `https://shop.example.com/x`. The path is sent as written. */
async function send(example: string, target: string, { ip = '203.0.113.7', cf, headers }: Asked) {
  const [, method = 'GET', host = 'www.example.com', path] =
    /^(?:([A-Z]+) )?(?:https:\/\/([^/]+))?(\/.*)$/.exec(target)!
  // Only Miniflare's entry passes `cf` on; it also normalises paths.
  const { hostname, port } = new URL(cf ? running.stack.worker.url : running.stack.worker.directUrl)
  const outgoing = request({
    hostname,
    port,
    method,
    path,
    agent: false,
    headers: {
      host,
      'x-example': example,
      'cf-connecting-ip': ip,
      ...(cf && { 'mf-cf-blob': JSON.stringify(cf) }),
      ...headers,
    },
  })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = await text(response)
  const field = (name: string) => response.headers[name]?.toString()
  const [, policy, left] = /^"(.*?)";r=(\d+)/.exec(field('ratelimit') ?? '') ?? []
  return {
    status: response.statusCode!,
    field,
    policy,
    left: left === undefined ? undefined : Number(left),
    body: body.startsWith('{') ? JSON.parse(body) : { text: body },
  } satisfies Answer as Answer
}

export type Ask = (target: string, asked?: Asked) => Promise<Answer>
export interface Scenario {
  ask: Ask
  /** The status of each of some requests, one after the other. */
  statuses: (times: number, target: string, asked?: Asked) => Promise<number[]>
  /** How much is left after each of these requests. */
  left: (...requests: Parameters<Ask>[]) => Promise<(number | undefined)[]>
}

export function scenarioOf(example: string): Scenario {
  const ask: Ask = (target, asked = {}) => send(example, target, asked)
  const inTurn = async <T>(requests: Parameters<Ask>[], value: (answer: Answer) => T) => {
    const found: T[] = []
    for (const one of requests) found.push(value(await ask(...one)))
    return found
  }
  return {
    ask,
    statuses: (times, ...one) => inTurn(Array(times).fill(one), ({ status }) => status),
    left: (...requests) => inTurn(requests, ({ left }) => left),
  }
}

/** The number of HTTP requests to the database for some requests at once. */
export async function callsOf(example: string, times = 50, target = '/'): Promise<number> {
  await send(example, target, {})
  const before = running.stack.httpRequests()
  const asked = Array.from({ length: times }, () => send(example, target, {}))
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status)).toEqual(ok(times))
  return running.stack.httpRequests() - before
}

export const ok = (times: number) => Array(times).fill(200)

/** What each example is expected to do, by its name. */
export type Scenarios = Record<string, (scenario: Scenario) => Promise<void>>
