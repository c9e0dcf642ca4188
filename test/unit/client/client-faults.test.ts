import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { ApiError, type ClientOptions, createClient } from '../../../src/client/client.ts'

const TOKEN = 'a-token-of-the-api'
const call = ['per-user', 'user-7'] as const
const allowedAnyway = {
  allowed: true,
  reason: 'store-error',
  fallback: 'allow',
  retryAfterMs: 0,
  limits: [],
  limit: 0,
  remaining: 0,
  resetAfterMs: 0,
}
const deniedAnyway = { ...allowedAnyway, allowed: false, fallback: 'deny', retryAfterMs: null }

const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
beforeEach(() => void warn.mockClear())

describe('a client whose decision API gives no decision', () => {
  type Fault = (response: ServerResponse, request: IncomingMessage) => unknown
  const refuses = (status: number): [string, [string, number, Fault]] => [
    `${status}`,
    ['refused', status, (response) => problem(response, status)],
  ]
  /** Faults of a server by name, with the code and the status of the error. */
  const faults: Record<string, [code: string, status: number | undefined, fault: Fault]> = {
    hang: ['timeout', undefined, () => {}],
    stall: [
      'timeout',
      undefined,
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).write('{'),
    ],
    reset: ['unreachable', undefined, (response) => response.socket!.resetAndDestroy()],
    'break off': [
      'unreachable',
      undefined,
      (response) => {
        const headers = { 'content-type': 'application/json', 'content-length': 99 }
        response.writeHead(200, headers).write('{')
        setTimeout(() => response.socket!.destroy(), 50)
      },
    ],
    redirect: [
      'bad-reply',
      307,
      (response) => response.writeHead(307, { location: `${elsewhere}/` }).end(),
    ],
    html: ['bad-reply', 200, (response) => html(response, 200)],
    500: ['bad-reply', 500, (response) => html(response, 500)],
    'bad JSON': ['bad-reply', 200, (response) => json(response, 200, '{')],
    'no decision': ['bad-reply', undefined, (response) => json(response, 200, '{"allowed":"yes"}')],
    null: ['bad-reply', 200, (response) => json(response, 200, 'null')],
    list: ['bad-reply', undefined, (response) => json(response, 200, '[]')],
    ...Object.fromEntries([401, 403, 404, 413, 429, 503].map(refuses)),
    422: ['refused', 422, (response) => problem(response, 422, { title: 'secret user' })],
    'an echo': [
      'refused',
      400,
      (response, { headers }) =>
        problem(response, 400, { title: headers.authorization, errors: headers.authorization }),
    ],
  }
  const html = (response: ServerResponse, status: number) =>
    response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Hi</h1>')
  const json = (response: ServerResponse, status: number, text: string, type = 'json') =>
    response.writeHead(status, { 'content-type': `application/${type}` }).end(text)
  const problem = (response: ServerResponse, status: number, more: object = {}) =>
    json(
      response,
      status,
      JSON.stringify({ type: 'about:blank', status, title: 'No', ...more }),
      'problem+json',
    )

  let fault = ''
  let calls = 0
  const server = createServer((request, response) => {
    faults[fault]?.[2](response, request) // A call may arrive after its deadline, and its test.
  })
  /** The target of the redirect. No request must arrive here. */
  const other = createServer((_, response) => {
    strangers += 1
    response.end()
  })
  let strangers = 0
  let url: string
  let elsewhere: string
  beforeAll(async () => {
    for (const one of [server, other]) await once(one.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  })
  afterAll(() => {
    for (const one of [server, other]) {
      one.closeAllConnections()
      one.close()
    }
  })
  beforeEach(() => {
    fault = ''
    calls = 0
  })

  /** A client with a short deadline only if the server does not answer, so that a busy machine causes no timeout. */
  const client = (options: Partial<ClientOptions> = {}) => {
    const deadlineMs = fault === 'hang' || fault === 'stall' ? 300 : 10_000
    const counting = (...call: Parameters<typeof fetch>) => {
      calls += 1
      return fetch(...call)
    }
    return createClient({ url, token: TOKEN, deadlineMs, fetch: counting, ...options })
  }

  test.each(Object.entries(faults))(
    'After the fault "%s", onError gets the error and decides.',
    async (name, [code, status]) => {
      fault = name
      expect({ ...(await client().limit(...call)) }).toEqual(allowedAnyway)
      const denied = await client({ onError: 'deny' }).limit([call, ['everyone', '']])
      expect({ ...denied }).toEqual(deniedAnyway)
      const received: unknown[] = []
      const withFunction = client({
        onError: (error, ask) => {
          received.push(error.code, error.status, JSON.parse(JSON.stringify(ask)))
          return 'deny'
        },
      })
      expect({ ...(await withFunction.peek(...call)) }).toEqual(deniedAnyway)
      const [policy, key] = call
      expect(received).toEqual([code, status, { policy, key, mode: 'peek' }])
      const error = await client({ onError: 'throw' })
        .limit(...call)
        .catch((error) => error)
      expect(error).toBeInstanceOf(ApiError)
      expect(`${error.message} ${error.stack} ${error.cause}`).not.toContain(TOKEN)
      expect(calls).toBe(4) // The client did not retry.
    },
  )

  test.each(Object.entries(faults))(
    'After the fault "%s", a request passes by onError only if the API has not refused it as invalid.',
    async (name, [code, status]) => {
      fault = name
      const isInvalid = code === 'refused' && [400, 413, 422].includes(status!)
      const decision = await client().decide({ method: 'TRACE', url: 'https://a.example/' })
      expect({ ...decision }).toEqual(isInvalid ? deniedAnyway : allowedAnyway)
    },
  )

  test.each(Object.keys(faults))(
    'After the fault "%s", a refund and a reset reject with the error.',
    async (name) => {
      fault = name
      await expect(client().refund(...call)).rejects.toBeInstanceOf(ApiError)
      await expect(client().reset(...call)).rejects.toBeInstanceOf(ApiError)
    },
  )

  test('The client does not follow a redirect.', () => {
    expect(strangers).toBe(0)
  })

  test('The client answers by the deadline if the server stalls.', async () => {
    fault = 'stall'
    const start = performance.now()
    const answer = client({ deadlineMs: 100, onError: 'throw' }).limit(...call)
    await expect(answer).rejects.toThrow('no answer within 100 ms')
    expect(performance.now() - start).toBeLessThan(5_000)
  })

  test('The deadline also holds if a custom fetch ignores the signal.', async () => {
    const api = client({ deadlineMs: 100, fetch: () => new Promise(() => {}) })
    expect({ ...(await api.limit(...call)) }).toEqual(allowedAnyway)
  })

  test('The console gets one warning for each kind of failure, without the token and the key.', async () => {
    const api = client()
    for (fault of ['422', '422', '401', '422']) await api.limit(...call)
    const lines = warn.mock.calls.flat()
    expect(lines).toEqual([
      'sluice: refused: the decision API answered 422 (onError: allow; logged once)',
      'sluice: refused: the decision API answered 401 (onError: allow; logged once)',
    ])
  })

  test('The console gets no warning if onError is a function.', async () => {
    fault = '401'
    await client({ onError: () => 'allow' }).limit(...call)
    expect(warn).not.toHaveBeenCalled()
  })

  test('The error has the problem document as the API sent it.', async () => {
    fault = '422'
    const error = await client({ onError: 'throw' })
      .limit(...call)
      .catch((error) => error)
    expect(error.problem).toMatchObject({ status: 422, title: 'secret user' })
    expect(error.message).not.toContain('secret user')
  })

  test("The caller's signal rejects with its own reason for any onError.", async () => {
    fault = 'hang'
    const reason = new Error('the client went away')
    await expect(client().limit(...call, { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    )
    expect(calls).toBe(0)
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 50)
    const patient = client({ deadlineMs: 10_000 })
    await expect(patient.limit(...call, { signal: controller.signal })).rejects.toBe(reason)
  })

  test('A fallback, a refusal and a peek are not settled.', async () => {
    fault = '401'
    const fallback = await client().limit(...call)
    const answering = (more: object) =>
      client({ fetch: async () => Response.json({ ...taken, ...more }) })
    const refused = await answering({ allowed: false }).limit(...call)
    const peeked = await answering({}).peek(...call)
    calls = 0
    for (const decision of [fallback, refused, peeked]) await decision.settle({ cost: 0 })
    expect(calls).toBe(0)
  })

  test.each(Object.keys(faults))('The fault "%s" of a settlement is logged.', async (name) => {
    let isFirst = true
    fault = name
    const send = async (...given: Parameters<typeof fetch>) => {
      if (!isFirst) return fetch(...given)
      isFirst = false
      return Response.json(taken)
    }
    for (const onError of ['throw', () => 'deny' as const] as const) {
      isFirst = true
      warn.mockClear()
      const charge = await client({ fetch: send, onError }).limit(...call)
      await charge.settle({ cost: 0 })
      expect(warn).toHaveBeenCalledOnce()
    }
  })
})

const taken = { allowed: true, reason: 'within-limit', retryAfterMs: 0, limits: [], decidedAt: 1 }

test('A client with a short deadline tells the API to answer in time, and gives a call that waits so much longer.', async () => {
  const bodies: unknown[] = []
  const answering = (delayMs: number, deadlineMs: number) =>
    createClient({
      url: 'https://limits.example.com',
      token: 'a-token-of-the-decision-api',
      deadlineMs,
      onError: 'deny',
      fetch: async (_, { body }) => {
        bodies.push(JSON.parse(String(body)))
        await new Promise((resolve) => setTimeout(resolve, delayMs))
        return Response.json({ allowed: true, reason: 'within-limit', retryAfterMs: 0, limits: [] })
      },
    })
  const policy = { policy: 'per-user', key: 'a' }
  await answering(0, 1_000).limit('per-user', 'a')
  await answering(0, 300).limit('per-user', 'a')
  await answering(0, 300).peek('per-user', 'a')
  const waiting = await answering(150, 50).limit('per-user', 'a', { waitMs: 5_000 })
  expect(bodies).toEqual([
    policy,
    { ...policy, waitMs: 150 },
    { ...policy, mode: 'peek' },
    { ...policy, waitMs: 5_000 },
  ])
  expect(waiting.allowed).toBe(true)
})
