/** Described requests of which parts were too long: a client cannot avoid a decision of /decide with padding. */
import { describe, expect, test } from 'vitest'
import { createClient, describeRequest } from '../../../src/client/client.ts'
import { API_TOKEN, API_URL, useApi } from '../../support/api-stack.ts'

const skips = { limit: 1000, window: '1h', onMissingKey: 'skip' } as const
const on = (name: string, more: object = {}) => ({ host: `${name}.example.com`, ...more })

const api = useApi(
  {
    allow: on('allowed', { not: { header: { 'x-external': true } } }),
    deny: { name: 'bad', ...on('denied', { header: { 'x-bad': 'yes' } }) },
    policies: [
      { ...skips, name: 'agent', match: on('agent', { header: { 'user-agent': '*bot*' } }) },
      { ...skips, name: 'session', match: on('session'), key: 'cookie:session' },
      { ...skips, name: 'user', match: on('user'), key: 'header:x-user' },
      { ...skips, name: 'api-key', match: on('api-key'), key: 'api-key' },
      { ...skips, name: 'term', match: on('term'), key: 'query:q' },
      {
        ...skips,
        name: 'query',
        match: on('query', { query: { q: 'dear' } }),
        cost: { rules: [{ cost: 1, query: { free: '1' } }], otherwise: 9 },
      },
      {
        ...skips,
        name: 'orders',
        match: on('orders', { path: '/users/:id/orders' }),
        key: 'path:id',
      },
      { ...skips, name: 'pages', match: on('pages'), key: 'path' },
      { ...skips, name: 'allowed', match: on('allowed') },
      { ...skips, name: 'body', match: on('body', { body: { method: 'dear' } }), key: 'global' },
      { ...skips, name: 'tool', match: on('tool'), key: 'body:name' },
    ],
  },
  {},
  { bodies: {} },
)

const decide = (request: Request, more: object = {}) =>
  createClient({
    url: API_URL,
    token: API_TOKEN,
    deadlineMs: 25_000, // a slow machine must cause no timeout
    onError: 'throw',
    fetch: async (url, init) => api.fetch(url, init as object),
  }).decide({ ...describeRequest(request, '203.0.113.7'), ...more })

const pad = 'x'.repeat(9000)
/** The URLs of the host `pages` are cut within its `..x`. */
const cutAtDots = `/${'x'.repeat(8163)}/..${pad}`
const crowd = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`a-${n}`, '']))

describe('A policy applies although the client has padded', () => {
  test.each<[string, string, string, Record<string, string>]>([
    ['its cookies', 'session', '/', { cookie: `session=a; pad=${pad}` }],
    ['its User-Agent', 'agent', '/', { 'user-agent': `bot ${pad}` }],
    ['a key', 'user', '/', { 'x-user': pad }],
    ['an API key', 'api-key', '/', { authorization: `Bearer ${pad}` }],
    ['its fields with a crowd', 'user', '/', { ...crowd, 'x-user': 'ann' }],
    ['its query', 'query', `/?q=dear&pad=${pad}`, {}],
    ['a key in the query', 'term', `/?q=${pad}`, {}],
    ['its path', 'orders', `/users/${pad}/orders`, {}],
    ['a key in the path', 'pages', `/${pad}`, {}],
    ['its path so that a cut would end with a dot segment', 'pages', cutAtDots, {}],
  ])('%s.', async (_, policy, target, headers) => {
    const url = new URL(target, `https://${policy}.example.com`)
    const decision = await decide(new Request(url, { headers }))
    expect(decision.limits.map((limit) => limit.policy)).toEqual([policy])
  })
})

test('All clients with the same padded part share one quota, so that none gets a new one.', async () => {
  const remaining = async (user: string) => {
    const headers = { 'x-user': user + pad }
    const { limits } = await decide(new Request('https://user.example.com/', { headers }))
    return limits[0]!.remaining
  }
  const first = await remaining('a')
  expect(await remaining('b')).toBe(first - 1)
})

test('Of several costs the highest counts.', async () => {
  const url = 'https://query.example.com/?q=dear&free=1'
  const costOf = async (url: string) => (await decide(new Request(url))).limits[0]!.cost
  expect(await costOf(url)).toBe(1)
  expect(await costOf(`${url}&pad=${pad}`)).toBe(9)
})

test('Padding opens no entry of allow, and closes none of deny.', async () => {
  const padded = { headers: { ...crowd, 'x-external': '1', 'x-bad': 'yes', 'user-agent': pad } }
  const allowed = await decide(new Request('https://allowed.example.com/', padded))
  expect(allowed.limits).toHaveLength(1)
  const denied = await decide(new Request('https://denied.example.com/', padded))
  expect(denied).toMatchObject({ allowed: false, denied: { by: 'bad' } })
})

describe.each(['POST', 'GET'])('The body of a %s', (method) => {
  const headers = { 'content-type': 'application/json' }
  const meets = async (policy: string, body?: string) => {
    const request = new Request(`https://${policy}.example.com/`, { method, headers })
    const { limits } = await decide(request, body === undefined ? {} : { body })
    return limits.length === 1
  }

  test('counts as in the gateway.', async () => {
    expect(await meets('body', '{"method":"dear"}')).toBe(true)
    expect(await meets('body', '{"method":"cheap"}')).toBe(false)
    expect(await meets('tool', '{"name":"a"}')).toBe(true)
    expect(await meets('tool', '{"name":""}')).toBe(false)
    expect(await meets('body', '{"method"')).toBe(true)
  })

  test('that is not described is unreadable, except that of a GET.', async () => {
    expect(await meets('body')).toBe(method === 'POST')
    expect(await meets('tool')).toBe(method === 'POST')
  })

  test('that is too long to describe is unreadable.', async () => {
    expect(await meets('body', JSON.stringify({ method: 'cheap', pad: pad.repeat(10) }))).toBe(true)
    expect(await meets('tool', JSON.stringify({ pad: pad.repeat(10) }))).toBe(true)
  })
})

test('A host of 9000 characters still ends with the domain that a policy matches.', async () => {
  const described = describeRequest(new Request(`https://${'a.'.repeat(4500)}example.com/`))
  expect(new URL(described.url).hostname).toMatch(/^x[a.]{200,}example\.com$/)
  // A URL would ignore the end of this host, which reads as a number that is too large.
  const number = new Request(`https://${'a'.repeat(8300)}0x${'f'.repeat(251)}/`)
  expect(describeRequest(number).url.length).toBeLessThan(300)
})
