import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Stack, startStack } from '../../../dev/stack.ts'
import { requestDescription } from '../../../src/api/schema.ts'
import {
  ApiError,
  type Ask,
  type ClientOptions,
  createClient,
  describeRequest,
} from '../../../src/client/client.ts'
import { checked } from '../../../src/config/schema/checked.ts'

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

describe('where the decision API gives no decision', () => {
  /** What a server that is not well does, by name. */
  const faults: Record<string, (response: ServerResponse, request: IncomingMessage) => unknown> = {
    hang: () => {},
    stall: (response) => response.writeHead(200, { 'content-type': 'application/json' }).write('{'),
    reset: (response) => response.socket!.resetAndDestroy(),
    'break off': (response) => {
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': 99 })
        .write('{')
      setTimeout(() => response.socket!.destroy(), 50)
    },
    redirect: (response) => response.writeHead(307, { location: `${elsewhere}/` }).end(),
    html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hi</h1>'),
    500: (response) => response.writeHead(500, { 'content-type': 'text/html' }).end('<h1>Oh</h1>'),
    'bad JSON': (response) => json(response, 200, '{'),
    'no decision': (response) => json(response, 200, '{"allowed":"yes"}'),
    null: (response) => json(response, 200, 'null'),
    'too few': (response) => json(response, 200, '[]'),
    401: (response) => problem(response, 401),
    403: (response) => problem(response, 403),
    404: (response) => problem(response, 404),
    413: (response) => problem(response, 413),
    422: (response) =>
      problem(response, 422, {
        errors: [{ path: 'key', expected: 'a text', got: '"secret user"' }],
      }),
    429: (response) => problem(response, 429),
    503: (response) => problem(response, 503),
    'an echo': (response, { headers }) =>
      problem(response, 400, { title: headers.authorization, errors: headers.authorization }),
  }
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
    calls += 1
    faults[fault]!(response, request)
  })
  /** Where a redirect points; nobody should come. */
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
    calls = 0
  })

  const client = (options: Partial<ClientOptions> = {}) =>
    createClient({ url, token: TOKEN, deadlineMs: 300, ...options })

  const codes: Record<string, [code: string, status?: number]> = {
    hang: ['timeout'],
    stall: ['timeout'],
    reset: ['unreachable'],
    'break off': ['unreachable'],
    redirect: ['bad-reply', 307],
    html: ['bad-reply', 200],
    500: ['bad-reply', 500],
    'bad JSON': ['bad-reply', 200],
    'no decision': ['bad-reply'],
    null: ['bad-reply', 200],
    'too few': ['bad-reply'],
    401: ['refused', 401],
    403: ['refused', 403],
    404: ['refused', 404],
    413: ['refused', 413],
    422: ['refused', 422],
    429: ['refused', 429],
    503: ['refused', 503],
    'an echo': ['refused', 400],
  }

  test.each(Object.entries(codes))(
    '%s: onError decides, and is told why',
    async (name, [code, status]) => {
      fault = name
      expect(await client().decide(ask)).toEqual(allowedAnyway)
      expect(await client({ onError: 'deny' }).decide([ask, ask])).toEqual([
        deniedAnyway,
        deniedAnyway,
      ])
      const told: unknown[] = []
      const explicitKey = client({
        onError: (error, asked) => {
          told.push(error.code, error.status, asked)
          return 'deny'
        },
      })
      expect(await explicitKey.peek(ask)).toEqual(deniedAnyway)
      expect(told).toEqual([code, status, { ...ask, mode: 'peek' }])
      const error = await client({ onError: 'throw' })
        .decide(ask)
        .catch((error) => error)
      expect(error).toBeInstanceOf(ApiError)
      expect(`${error.message} ${error.stack} ${error.cause}`).not.toContain(TOKEN)
      expect(calls).toBe(4) // none was repeated
    },
  )

  test('nobody that a redirect points at is called', () => {
    expect(strangers).toBe(0)
  })

  test('no answer comes later than the deadline', async () => {
    fault = 'stall'
    const start = performance.now()
    await client({ deadlineMs: 100 }).decide(ask)
    expect(performance.now() - start).toBeLessThan(600)
  })

  test('nor where a fetch of the caller’s does not peek at the signal', async () => {
    const api = client({ deadlineMs: 100, fetch: () => new Promise(() => {}) })
    expect(await api.decide([ask, ask])).toEqual([allowedAnyway, allowedAnyway])
  })

  test('the console is told once of each kind of failure, and neither the token nor the key', async () => {
    const api = client()
    for (fault of ['422', '422', '401', '422']) await api.decide(ask)
    const lines = warn.mock.calls.flat()
    expect(lines).toEqual([
      'sluice: refused: the decision API answered 422, key: expected a text (onError: allow; told once)',
      'sluice: refused: the decision API answered 401 (onError: allow; told once)',
    ])
  })

  test('nothing is told on the console where a function is told', async () => {
    fault = '401'
    await client({ onError: () => 'allow' }).decide(ask)
    expect(warn).not.toHaveBeenCalled()
  })

  test('a problem is at hand as it came', async () => {
    fault = '422'
    const error = await client({ onError: 'throw' })
      .decide(ask)
      .catch((error) => error)
    expect(error.problem.errors).toEqual([
      { path: 'key', expected: 'a text', got: '"secret user"' },
    ])
  })

  test("the caller's own signal rejects with its reason, whatever onError says", async () => {
    fault = 'hang'
    const reason = new Error('the client went away')
    await expect(client().decide(ask, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(calls).toBe(0)
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 50)
    await expect(client().decide(ask, { signal: controller.signal })).rejects.toBe(reason)
  })

  test('nothing is given back of what the store did not decide, refused, or only showed', async () => {
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

  test('what cannot be given back is no reason to fail, unless onError is throw', async () => {
    fault = '503'
    const taken = { ...allowedAnyway, decidedAt: 1 } as never
    expect(await client().refund(ask, taken)).toBeUndefined()
    await expect(client({ onError: 'throw' }).refund(ask, taken)).rejects.toBeInstanceOf(ApiError)
  })

  test('no ask is no call', async () => {
    expect(await client().decide([])).toEqual([])
    expect(calls).toBe(0)
  })
})

describe('a client', () => {
  test.each([
    ['no URL', { url: 'limits.example.com', token: TOKEN }],
    ['another scheme', { url: 'ftp://limits.example.com', token: TOKEN }],
    [
      'a password in the URL',
      { url: 'https://a:secret-in-the-url@limits.example.com', token: TOKEN },
    ],
    ['no token', { url: 'https://limits.example.com', token: undefined as never }],
    ['a short token', { url: 'https://limits.example.com', token: 'short' }],
    ...[0, -1, 1.5, Number.NaN, 2 ** 31].map((deadlineMs): [string, ClientOptions] => [
      `a deadline of ${deadlineMs}`,
      { url: 'https://limits.example.com', token: TOKEN, deadlineMs },
    ]),
    ['a line break in the token', { url: 'https://limits.example.com', token: `${TOKEN}\n` }],
  ])('is not made of %s, and says so without the secret', (_, options) => {
    const error = (() => {
      try {
        return createClient(options)
      } catch (error) {
        return error
      }
    })()
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).not.toMatch(/a-token|secret/)
  })
})

describe('a request in hand', () => {
  test('is told as it is', () => {
    const request = new Request('https://api.example.com/login?x=1#y', {
      method: 'POST',
      headers: { 'X-Api-Key': 'k', Cookie: 'a=b' },
    })
    Object.assign(request, { cf: { country: 'DE', asn: 64500, colo: 'FRA', city: 'Berlin' } })
    expect(describeRequest(request, '203.0.113.7')).toEqual({
      method: 'POST',
      url: 'https://api.example.com/login?x=1',
      ip: '203.0.113.7',
      headers: { 'x-api-key': 'k', cookie: 'a=b' },
      country: 'DE',
      asn: '64500',
      colo: 'FRA',
    })
  })

  test.each([
    ['a URL that is too long', `https://a.example/${'x'.repeat(9000)}?y`, {}, undefined],
    ['a query that is too long', `https://a.example/x?${'y'.repeat(9000)}`, {}, undefined],
    [
      'a value that is too long',
      'https://a.example/',
      { long: 'x'.repeat(9000), short: 'y' },
      undefined,
    ],
    [
      'too many fields',
      'https://a.example/',
      Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-${i}`, 'y'])),
      undefined,
    ],
    [
      'too much in all',
      'https://a.example/',
      Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`x-${i}`, '"'.repeat(1000)])),
      undefined,
    ],
    ['an address that is none', 'https://a.example/', {}, 'unknown'],
    ['an address with a zone', 'https://a.example/', {}, 'fe80::1%eth0'],
    ['an address out of range', 'https://a.example/', {}, '1.2.3.256'],
  ])('is told so that the decision API takes it: %s', (_, url, headers, ip) => {
    const described = describeRequest(new Request(url, { headers: { ...headers } }), ip)
    expect(checked(requestDescription, described, 'body').problems).toBeUndefined()
    expect(JSON.stringify(described).length).toBeLessThan(60_000)
  })

  test('the short fields are told first', () => {
    const headers = {
      'a-long-one': 'x'.repeat(8000),
      'b-long-one': 'x'.repeat(8190),
      'c-long-one': 'x'.repeat(8192),
      'x-tenant': 'acme',
    }
    const described = describeRequest(new Request('https://a.example/', { headers }))
    expect(Object.keys(described.headers!)).toEqual(['x-tenant', 'a-long-one', 'b-long-one'])
  })

  test('no client can crowd out its credentials, nor the fields that are asked for', () => {
    const crowd = Array.from({ length: 150 }, (_, i) => [`x-${i}`, ''])
    const headers = {
      ...Object.fromEntries(crowd),
      authorization: 'Bearer abc',
      'x-tenant': 'acme',
    }
    const request = new Request('https://a.example/', { headers })
    expect(describeRequest(request).headers).toMatchObject({ authorization: 'Bearer abc' })
    expect(describeRequest(request, undefined, ['X-Tenant', 'x-none']).headers).toEqual({
      'x-tenant': 'acme',
    })
  })

  test('no slashes before a path push it out', () => {
    const request = new Request(`https://a.example${'/'.repeat(9000)}login?${'x'.repeat(9000)}`)
    expect(describeRequest(request).url).toBe('https://a.example/login')
  })

  test('whatever a client says, the decision API takes the description', () => {
    fc.assert(
      fc.property(
        fc.webUrl({ withQueryParameters: true, withFragments: true }),
        fc.dictionary(
          fc.stringMatching(/^[a-z-]{1,20}$/),
          fc.stringMatching(/^[\t -~\u00a0-\u00ff]*$/),
        ),
        fc.oneof(fc.ipV4(), fc.ipV6(), fc.ipV4Extended(), fc.string()),
        (url, headers, ip) => {
          const described = describeRequest(new Request(url, { headers: { ...headers } }), ip)
          expect(checked(requestDescription, described, 'body').problems).toBeUndefined()
        },
      ),
      { numRuns: 1000 },
    )
  })
})

describe('with a api', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({
      config: {
        policies: [
          {
            name: 'per-user',
            limit: 5,
            window: '1h',
            match: { path: '/never' },
            key: 'header:x-user',
          },
          {
            name: 'slots',
            algorithm: 'concurrency',
            limit: 2,
            window: '1m',
            match: { path: '/never' },
            key: 'header:x-user',
          },
          { name: 'login', limit: 2, window: '1h', match: { path: '/login', method: 'POST' } },
        ],
      },
      env: { SLUICE_API_TOKEN: `${TOKEN}, another-token-of-the-api` },
    })
  })
  afterAll(() => stack?.stop())
  const client = (options: Partial<ClientOptions> = {}) =>
    createClient({ url: stack.url, token: TOKEN, deadlineMs: 10_000, onError: 'throw', ...options })
  let users = 0
  const somebody = (more: Partial<Ask> = {}): Ask =>
    ({ policy: 'per-user', key: `user-${++users}`, ...more }) as Ask

  test('decides and charges until the limit, then says when', async () => {
    const api = client()
    const asked = somebody({ cost: 3 })
    expect(await api.decide(asked)).toMatchObject({ allowed: true, limits: [{ remaining: 2 }] })
    const refused = await api.decide(asked)
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', limits: [{ remaining: 2 }] })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
  })

  test('looks without charging', async () => {
    const asked = somebody()
    for (let i = 0; i < 3; i++) {
      expect((await client().peek(asked)).limits[0]!.remaining).toBe(5)
    }
  })

  test('decides a list in its order', async () => {
    const [a, b] = [somebody(), somebody({ cost: 9 })]
    const decisions = await client().decide([a, b, a])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true])
    expect(decisions[2]!.limits[0]!.remaining).toBe(3)
  })

  test('decides about a request by whatever policies it meets', async () => {
    const request = new Request('https://www.example.com//LOGIN/', { method: 'POST' })
    const asked = { request: describeRequest(request, '198.51.100.1') }
    const answers = [
      await client().decide(asked),
      await client().decide(asked),
      await client().decide(asked),
    ]
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(answers[0]!.limits.map(({ policy }) => policy)).toEqual(['login'])
  })

  test('gives back part of what was taken, and the whole', async () => {
    const api = client()
    const asked = somebody({ cost: 4 })
    const decision = await api.decide(asked)
    expect((await api.refund(asked, decision, { cost: 3 }))!.limits[0]!.remaining).toBe(4)
    const whole = somebody({ cost: 4 })
    const standing = await api.refund(whole, await api.decide(whole))
    expect(standing!.limits[0]!.remaining).toBe(5)
  })

  test('holds slots until they are given back', async () => {
    const api = client()
    const asked = somebody({ policy: 'slots' } as never)
    const first = await api.decide(asked)
    expect(first.slot).toMatch(/./)
    await api.decide(asked)
    expect((await api.decide(asked)).allowed).toBe(false)
    await api.refund(asked, first)
    expect((await api.decide(asked)).allowed).toBe(true)
  })

  test('charges a repeated call once', async () => {
    const api = client()
    const asked = somebody({ cost: 2 })
    const options = { idempotencyKey: `order-${users}` }
    const decisions = [await api.decide(asked, options), await api.decide(asked, options)]
    expect(decisions.map(({ limits }) => limits[0]!.remaining)).toEqual([3, 3])
    expect((await api.peek(asked)).limits[0]!.remaining).toBe(3)
    await expect(api.decide(somebody(), options)).rejects.toMatchObject({ status: 422 })
  })

  test('says no with a wrong token', async () => {
    const wrong = client({ token: 'a-token-of-nobody' })
    await expect(wrong.decide(somebody())).rejects.toMatchObject({ code: 'refused', status: 401 })
  })

  test('says where a body is wrong', async () => {
    const error = await client()
      .decide([somebody(), { policy: 'none', key: 'x' }])
      .catch((e) => e)
    expect(error.problem.errors).toMatchObject([{ path: '[1].policy' }])
  })

  test('decides lists of any length, with keys of any length, in their order', async () => {
    const same = somebody({ cost: 2 })
    const long = Array.from({ length: 150 }, (_, n) => somebody({ key: `${n}${'€'.repeat(2000)}` }))
    const asks = [same, ...long, same, same]
    const options = { idempotencyKey: 'a-long-list' }
    const decisions = await client().decide(asks, options)
    expect(decisions).toHaveLength(asks.length)
    expect(decisions.map(({ reason }) => reason)).toEqual([
      ...Array(152).fill('within-limit'),
      'limited',
    ])
    expect(await client().decide(asks, options)).toEqual(decisions)
  })

  test('decides about keys of any length', async () => {
    for (const key of ['x'.repeat(5000), 2 ** 70, -0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect((await client().decide({ policy: 'per-user', key })).reason).toBe('within-limit')
    }
  })
})
