import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { describe, expect, test } from 'vitest'
import type { CorsOptions, HeaderSet } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { withCors } from '../../../../src/core/respond/cors.ts'
import { problem } from '../../../../src/core/respond/response.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { rateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { messageOf } from '../../../support/parse.ts'

const page = 'https://app.example.com'
const parse = (options: object) => parseConfig({ policies: [], ...options }, defaultFields)
const named = parse({ cors: { origins: page } })
const anyOrigin = parse({ cors: { origins: '*' } })
const withCookies = parse({
  cors: { origins: [page, 'https://b.example.com'], credentials: true },
})
const limiterFields = 'RateLimit-Policy, RateLimit, Retry-After'

/** The CORS fields of a response of the limiter. */
function own(config: typeof named, origin: string | undefined, before = {}) {
  const response = withCors(problem(429, { title: 'x' }, before), config, origin)
  const { 'content-type': _, 'cache-control': __, ...fields } = Object.fromEntries(response.headers)
  return fields
}

describe('CORS fields of a response of the limiter', () => {
  const exposed = { 'access-control-expose-headers': limiterFields }
  const openTo = (origin: string) => ({ 'access-control-allow-origin': origin, ...exposed })
  const withVary = (origin: string) => ({ ...openTo(origin), vary: 'Origin' })
  const other = 'https://b.example.com'

  test.each<[string, typeof named, string | undefined, object]>([
    ['to the configured origin', named, page, withVary(page)],
    ['to any origin with origins "*"', anyOrigin, page, openTo('*')],
    [
      'to a request with credentials',
      withCookies,
      other,
      { ...withVary(other), 'access-control-allow-credentials': 'true' },
    ],
    ['to an unlisted origin', named, 'https://evil.example', {}],
    ['to another scheme', named, 'http://app.example.com', {}],
    ['to another port', named, `${page}:8443`, {}],
    ['to a sandboxed page', named, 'null', {}],
    ['to a request without Origin', named, undefined, {}],
    ['to a request without Origin with origins "*"', anyOrigin, undefined, {}],
    ['without cors in the configuration', parse({}), page, {}],
  ])('A response of the limiter %s has the right CORS fields.', (_, config, origin, fields) => {
    expect(own(config, origin)).toEqual(fields)
  })

  test('A response of the limiter keeps an existing Access-Control-Allow-Origin.', () => {
    expect(own(named, page, { 'Access-Control-Allow-Origin': '*' })).toEqual(openTo('*'))
  })

  test.each([
    ['Accept-Encoding', 'Accept-Encoding, Origin'],
    ['accept-encoding,  origin', 'accept-encoding,  origin'],
    ['*', '*'],
  ])('A response of the limiter with Vary: %s gets Vary: %s.', (before, after) => {
    expect(own(named, page, { Vary: before })).toMatchObject({ vary: after })
  })
})

describe('CORS fields of a response of the origin', () => {
  const exposed = (fields: Record<string, string>, config = named) =>
    withCors(new Response('x', { headers: fields }), config).headers.get(
      'access-control-expose-headers',
    )
  const open = { 'Access-Control-Allow-Origin': page }
  const credentials = { ...open, 'Access-Control-Allow-Credentials': 'true' }
  const exposing = (names: string, fields: Record<string, string> = open) => ({
    ...fields,
    'Access-Control-Expose-Headers': names,
  })

  test('A response of the origin without Access-Control-Allow-Origin stays unchanged.', () => {
    const response = new Response('x')
    expect(withCors(response, named)).toBe(response)
  })

  test.each<[string, Record<string, string>, string]>([
    ['no list', open, limiterFields],
    ['a list of other names', exposing('ETag, X-Other'), `ETag, X-Other, ${limiterFields}`],
    [
      'some of the names in another case',
      exposing('ratelimit,RETRY-AFTER'),
      'ratelimit, RETRY-AFTER, RateLimit-Policy',
    ],
    ['all of the names', exposing(` ${limiterFields} `), limiterFields],
    ['the wildcard "*"', exposing('*'), '*'],
    ['a list with the wildcard "*"', exposing('ETag, *'), 'ETag, *'],
    [
      '"*" with credentials, where it is no wildcard',
      exposing('*', credentials),
      `*, ${limiterFields}`,
    ],
    ['an empty list', exposing(''), limiterFields],
    ['a list of empty items', exposing(', ,'), limiterFields],
    ['a malformed list, which browsers ignore', exposing('ETag, X Y'), limiterFields],
    ['a list that is not ASCII', exposing('\xfc'), limiterFields],
  ])('The fields of the limiter are exposed if the origin exposes %s.', (_, fields, expected) => {
    expect(exposed(fields)).toBe(expected)
  })

  test.each<[HeaderSet[] | 'off', string]>([
    [['draft-6'], 'RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset'],
    [
      ['draft-11', { prefix: 'X-RateLimit-', reset: 'iso' }],
      'RateLimit-Policy, RateLimit, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset',
    ],
    ['off', ''],
  ])('The fields of the header sets %j are exposed.', (headers, names) => {
    const expected = [names, 'Retry-After'].filter(Boolean).join(', ')
    expect(exposed(open, parse({ headers }))).toBe(expected)
  })

  test('A response of the origin gets no CORS field except Access-Control-Expose-Headers.', () => {
    const response = withCors(new Response('x', { headers: open }), withCookies)
    expect(Object.fromEntries(response.headers)).toEqual({
      'access-control-allow-origin': page,
      'access-control-expose-headers': limiterFields,
      'content-type': 'text/plain;charset=UTF-8',
    })
    expect(withCors(new Response('x'), withCookies).headers.has('vary')).toBe(false)
  })

  test('A response of an app is open only to the pages that the app itself names.', async () => {
    const app = new Hono().use(rateLimiter({ cors: { origins: page }, policies: [] }))
    const response = await app
      .get('/', (c) => c.text('x'))
      .request('/', { headers: { origin: page } })
    expect([...response.headers.keys()]).toEqual(['content-type'])
  })

  test('A response of the origin keeps its status and body.', async () => {
    const response = withCors(new Response('x', { status: 418, headers: open }), named)
    expect([response.status, await response.text()]).toEqual([418, 'x'])
    const none = withCors(new Response(null, { status: 304, headers: open }), named)
    expect([none.status, none.body]).toEqual([304, null])
  })
})

describe('the option cors', () => {
  test.each<[CorsOptions['origins'], string[]]>([
    [page, [page]],
    ['HTTPS://App.Example.com:443', [page]],
    ['https://bücher.example', ['https://xn--bcher-kva.example']],
    [
      ['*', 'http://localhost:3000'],
      ['*', 'http://localhost:3000'],
    ],
    ['http://[2001:db8::1]:8080', ['http://[2001:db8::1]:8080']],
  ])('The option cors.origins parses %j to %j, the form that browsers send.', (origins, parsed) => {
    expect(parse({ cors: { origins } }).cors).toEqual({ origins: parsed, credentials: false })
  })

  test.each([
    [{ origins: 'app.example.com' }, /^cors\.origins: expected an origin like/],
    [{ origins: `${page}/` }, /expected an origin/],
    [{ origins: 'https://*.example.com' }, /expected an origin/],
    [{ origins: 'null' }, /expected an origin/],
    [{ origins: 'https://a:b@example.com' }, /expected an origin/],
    [{ origins: 'https://a b' }, /expected an origin/],
    [{ origins: 'https://:1' }, /expected an origin/],
    [{ origins: [] }, /^cors\.origins: expected at least one value/],
    [{ origins: page, credentials: 'yes' }, /^cors\.credentials: expected true or false/],
    [
      { origins: '*', credentials: true },
      /^cors\.origins: expected no "\*" together with credentials/,
    ],
    [{ origins: page, methods: 'GET' }, /^cors\.methods: expected one of the fields/],
  ])('The option cors rejects %j.', (options, message) => {
    expect(messageOf({ policies: [], cors: options })).toMatch(message)
  })
})

test('Behind cors() of Hono, a refusal allows the origins of cors() and exposes the fields of the limiter.', async () => {
  const app = new Hono()
  app.use(cors({ origin: page, exposeHeaders: ['ETag'] }))
  // Nothing answers at this address, so `onStoreError` makes every decision.
  const store = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: 'x' }
  app.use(
    rateLimiter({
      clientAddress: 'cloudflare',
      policies: [{ name: 'a', limit: 1, window: '1m', onStoreError: 'deny' }],
    }),
  )
  app.get('/', (c) => c.text('unreached'))
  const response = await app.request('/', { headers: { Origin: page } }, store)
  expect(response.status).toBe(503)
  expect(response.headers.get('access-control-allow-origin')).toBe(page)
  expect(response.headers.get('access-control-expose-headers')).toBe(`ETag, ${limiterFields}`)
})
