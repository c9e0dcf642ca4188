import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { ApiError, type Ask, type ClientOptions, createClient } from '../../../src/client/client.ts'

const TOKEN = 'a-token-of-the-api'
const ask: Ask = { policy: 'per-user', key: 'user-7' }
const allowedAnyway = {
  allowed: true,
  reason: 'store-error',
  fallback: 'allow',
  retryAfterMs: 0,
  limits: [],
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
    'too few': ['bad-reply', undefined, (response) => json(response, 200, '[]')],
    ...Object.fromEntries([401, 403, 404, 413, 429, 503].map(refuses)),
    422: [
      'refused',
      422,
      (response) =>
        problem(response, 422, {
          errors: [{ path: 'key', expected: 'a text', got: '"secret user"' }],
        }),
    ],
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
    faults[fault]![2](response, request)
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
      expect(await client().decide(ask)).toEqual(allowedAnyway)
      expect(await client({ onError: 'deny' }).decide([ask, ask])).toEqual([
        deniedAnyway,
        deniedAnyway,
      ])
      const received: unknown[] = []
      const withFunction = client({
        onError: (error, ask) => {
          received.push(error.code, error.status, ask)
          return 'deny'
        },
      })
      expect(await withFunction.peek(ask)).toEqual(deniedAnyway)
      expect(received).toEqual([code, status, { ...ask, mode: 'peek' }])
      const error = await client({ onError: 'throw' })
        .decide(ask)
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
      const trace = { request: { method: 'TRACE', url: 'https://a.example/' } }
      const wanted = isInvalid ? deniedAnyway : allowedAnyway
      expect(await client().decide(trace)).toEqual(wanted)
      expect(await client().decide([trace, ask])).toEqual([wanted, allowedAnyway])
    },
  )

  test('The client does not follow a redirect.', () => {
    expect(strangers).toBe(0)
  })

  test('The client answers by the deadline if the server stalls.', async () => {
    fault = 'stall'
    const start = performance.now()
    const answer = client({ deadlineMs: 100, onError: 'throw' }).decide(ask)
    await expect(answer).rejects.toThrow('no answer within 100 ms')
    expect(performance.now() - start).toBeLessThan(5_000)
  })

  test('The deadline also holds if a custom fetch ignores the signal.', async () => {
    const api = client({ deadlineMs: 100, fetch: () => new Promise(() => {}) })
    expect(await api.decide([ask, ask])).toEqual([allowedAnyway, allowedAnyway])
  })

  test('The console gets one warning for each kind of failure, without the token and the key.', async () => {
    const api = client()
    for (fault of ['422', '422', '401', '422']) await api.decide(ask)
    const lines = warn.mock.calls.flat()
    expect(lines).toEqual([
      'sluice: refused: the decision API answered 422, key: expected a text (onError: allow; logged once)',
      'sluice: refused: the decision API answered 401 (onError: allow; logged once)',
    ])
  })

  test('The console gets no warning if onError is a function.', async () => {
    fault = '401'
    await client({ onError: () => 'allow' }).decide(ask)
    expect(warn).not.toHaveBeenCalled()
  })

  test('The error has the problem document as the API sent it.', async () => {
    fault = '422'
    const error = await client({ onError: 'throw' })
      .decide(ask)
      .catch((error) => error)
    expect(error.problem.errors).toEqual([
      { path: 'key', expected: 'a text', got: '"secret user"' },
    ])
  })

  test("The caller's signal rejects with its own reason for any onError.", async () => {
    fault = 'hang'
    const reason = new Error('the client went away')
    await expect(client().decide(ask, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(calls).toBe(0)
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 50)
    const patient = client({ deadlineMs: 10_000 })
    await expect(patient.decide(ask, { signal: controller.signal })).rejects.toBe(reason)
  })

  test('A refund of a fallback, a refusal or a peek makes no call.', async () => {
    const api = client()
    fault = '401'
    const decision = await api.decide(ask)
    calls = 0
    const taken = { ...decision, decidedAt: 1, reason: 'within-limit' as const }
    expect(await api.refund(ask, decision)).toBeUndefined()
    expect(await api.refund(ask, { ...taken, allowed: false })).toBeUndefined()
    expect(await api.refund({ ...ask, mode: 'peek' }, taken)).toBeUndefined()
    expect(calls).toBe(0)
  })

  test('A failed refund is ignored unless onError is throw.', async () => {
    fault = '503'
    const taken = { ...allowedAnyway, decidedAt: 1 } as never
    expect(await client().refund(ask, taken)).toBeUndefined()
    await expect(client({ onError: 'throw' }).refund(ask, taken)).rejects.toBeInstanceOf(ApiError)
  })

  test('An empty list makes no call.', async () => {
    expect(await client().decide([])).toEqual([])
    expect(calls).toBe(0)
  })
})

test('A client with a short deadline tells the API to answer in time, and gives an ask that waits so much longer.', async () => {
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
  const ask = { policy: 'per-user', key: 'a' }
  await answering(0, 1_000).decide(ask)
  await answering(0, 300).decide(ask)
  const waiting = await answering(150, 50).decide({ ...ask, waitMs: 5_000 })
  expect(bodies).toEqual([ask, { ...ask, waitMs: 150 }, { ...ask, waitMs: 5_000 }])
  expect(waiting.allowed).toBe(true)
})

test('The calls for one list share the deadline, so each of them waits for a part of it.', async () => {
  const waits: unknown[] = []
  const api = createClient({
    url: 'https://limits.example.com',
    token: 'a-token-of-the-decision-api',
    deadlineMs: 1_000,
    onError: 'deny',
    fetch: async (_, { body }) => {
      const asks = JSON.parse(String(body)) as { waitMs?: number }[]
      waits.push(...new Set(asks.map(({ waitMs }) => waitMs)))
      return Response.json(asks.map(() => ({ allowed: true, reason: 'within-limit', limits: [] })))
    },
  })
  await api.decide(Array.from({ length: 250 }, () => ({ policy: 'per-user', key: 'a' })))
  expect(waits).toEqual([166, 166, 166])
})
