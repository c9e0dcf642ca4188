/** The variables, the stack and the HTTP client for the scenarios of test/docs/examples.test.ts. */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import type { Stack } from '../../../tools/stack.ts'
import { sendCurl } from '../curl.ts'
import { type Issuer, sign } from '../issuer.ts'

/** The test starts both before the first scenario. */
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
  /** The name of the policy in `RateLimit`. */
  policy: string | undefined
  /** `r` in `RateLimit`: the units that remain. */
  remaining: number | undefined
  /** A problem document, or the origin's report of the request. */
  body: Partial<Echo> & Record<string, unknown>
}

export interface RequestOptions {
  ip?: string
  /** Cloudflare's data about the client, `request.cf`. */
  cf?: Record<string, unknown>
  headers?: Record<string, string>
}

let runs = 0
/** Names a new run of an example. Each run has separate counters and an app of its own, so that a failed test can run again. */
export const newRun = (example: string) => `${example}#${++runs}`

/** Sends a request, such as `POST /login` or `https://shop.example.com/x`, to a run. Does not normalize the path. */
async function sendTo(
  run: string,
  target: string,
  { ip = '203.0.113.7', cf, headers }: RequestOptions,
) {
  const [, method = 'GET', url] = /^(?:([A-Z]+) )?(.*)$/.exec(target)!
  // Only the entry of Miniflare passes `cf` on, and it normalizes paths.
  const { worker } = running.stack
  const { status, header, body } = await sendCurl(
    { method, body: undefined, headers: headers ?? {} },
    url!.startsWith('/') ? `https://www.example.com${url}` : url!,
    cf ? worker.url : worker.directUrl,
    {
      'x-example': run,
      'cf-connecting-ip': ip,
      ...(cf && { 'mf-cf-blob': JSON.stringify(cf) }),
    },
  )
  const [, policy, remaining] = /^"(.*?)";r=(\d+)/.exec(header('ratelimit') ?? '') ?? []
  return {
    status,
    field: header,
    policy,
    remaining: remaining === undefined ? undefined : Number(remaining),
    body: body.startsWith('{') ? JSON.parse(body) : { text: body },
  } satisfies Answer as Answer
}

export type Send = (target: string, options?: RequestOptions) => Promise<Answer>
export interface Scenario {
  send: Send
  /** Sends a request several times in sequence. Returns the statuses. */
  statuses: (times: number, target: string, options?: RequestOptions) => Promise<number[]>
  /** Sends requests in sequence. Returns the remaining units after each. A target needs no list around it. */
  remaining: (...requests: (string | Parameters<Send>)[]) => Promise<(number | undefined)[]>
}

export function scenarioOf(example: string): Scenario {
  const run = newRun(example)
  const send: Send = (target, options = {}) => sendTo(run, target, options)
  const inSequence = async <T>(requests: Parameters<Send>[], value: (answer: Answer) => T) => {
    const values: T[] = []
    for (const one of requests) values.push(value(await send(...one)))
    return values
  }
  return {
    send,
    statuses: (times, ...one) => inSequence(Array(times).fill(one), ({ status }) => status),
    remaining: (...requests) =>
      inSequence(
        requests.map((one) => (typeof one === 'string' ? [one] : one)),
        ({ remaining }) => remaining,
      ),
  }
}

/** Sends concurrent requests. Returns the number of HTTP requests to the database. */
export async function callsOf(run: string, times = 50, target = '/'): Promise<number> {
  await sendTo(run, target, {})
  const before = running.stack.httpRequests()
  const requests = Array.from({ length: times }, () => sendTo(run, target, {}))
  const answers = await Promise.all(requests)
  expect(answers.map(({ status }) => status)).toEqual(ok(times))
  return running.stack.httpRequests() - before
}

export const withHeaders = (headers: Record<string, string>): RequestOptions => ({ headers })
export const withKey = (key: string) => withHeaders({ 'x-api-key': key })
/** A request with a token of the secret `JWT_SECRET`, or of another one. */
export const withToken = async (claims: object, secret = env.JWT_SECRET) =>
  withBearer(sign(claims, { alg: 'HS256' }, Buffer.from(secret)))
export const withBearer = async (token: Promise<string>) =>
  withHeaders({ authorization: `Bearer ${await token}` })

export const ok = (times: number) => Array(times).fill(200)

/** Scenarios by the name of their example. */
export type Scenarios = Record<string, (scenario: Scenario) => Promise<void>>
