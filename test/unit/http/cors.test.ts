import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { describe, expect, test } from 'vitest'
import type { ConfigError } from '../../../src/base/errors.ts'
import type { CorsOptions, HeaderSet } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { rateLimiter } from '../../../src/gateway/middleware.ts'
import { withCors } from '../../../src/http/cors.ts'
import { problem } from '../../../src/http/response.ts'

const page = 'https://app.example.com'
const parse = (options: object) => parseConfig({ policies: [], ...options })
const named = parse({ cors: { origins: page } })
const anyone = parse({ cors: { origins: '*' } })
const withCookies = parse({
  cors: { origins: [page, 'https://b.example.com'], credentials: true },
})
const ours = 'RateLimit-Policy, RateLimit, Retry-After'

/** The CORS fields of an answer of our own. */
function own(config: typeof named, origin: string | undefined, before = {}) {
  const response = withCors(problem(429, { title: 'x' }, before), origin, config, { own: true })
  const { 'content-type': _, 'cache-control': __, ...fields } = Object.fromEntries(response.headers)
  return fields
}

describe('an answer of our own', () => {
  test.each<[string, typeof named, string | undefined, object]>([
    [
      'names the page that may read it',
      named,
      page,
      {
        'access-control-allow-origin': page,
        'access-control-expose-headers': ours,
        vary: 'Origin',
      },
    ],
    [
      'says so to any page',
      anyone,
      page,
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': ours },
    ],
    [
      'lets pages with cookies read it',
      withCookies,
      'https://b.example.com',
      {
        'access-control-allow-origin': 'https://b.example.com',
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': ours,
        vary: 'Origin',
      },
    ],
    ['says nothing to another page', named, 'https://evil.example', {}],
    ['says nothing to a page of another scheme', named, 'http://app.example.com', {}],
    ['says nothing to a page of another port', named, `${page}:8443`, {}],
    ['says nothing to a sandboxed page', named, 'null', {}],
    ['says nothing to no page', named, undefined, {}],
    ['says nothing to no page where any may read', anyone, undefined, {}],
    ['says nothing without cors in the configuration', parse({}), page, {}],
  ])('%s', (_, config, origin, fields) => {
    expect(own(config, origin)).toEqual(fields)
  })

  test('keeps an Allow-Origin that it has already', () => {
    expect(own(named, page, { 'Access-Control-Allow-Origin': '*' })).toEqual({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': ours,
    })
  })

  test.each([
    ['Accept-Encoding', 'Accept-Encoding, Origin'],
    ['accept-encoding,  origin', 'accept-encoding,  origin'],
    ['*', '*'],
  ])('with Vary: %s has Vary: %s', (before, after) => {
    expect(own(named, page, { Vary: before })).toMatchObject({ vary: after })
  })
})

describe('an answer of the origin', () => {
  /** What is exposed of it. */
  const exposed = (fields: Record<string, string>, config = named) =>
    withCors(new Response('x', { headers: fields }), page, config).headers.get(
      'access-control-expose-headers',
    )
  const open = { 'Access-Control-Allow-Origin': page }
  const credentials = { ...open, 'Access-Control-Allow-Credentials': 'true' }
  const exposing = (names: string, fields: Record<string, string> = open) => ({
    ...fields,
    'Access-Control-Expose-Headers': names,
  })

  test('that no page of another origin may read is left as it is', () => {
    const response = new Response('x')
    expect(withCors(response, page, named)).toBe(response)
  })

  test.each<[string, Record<string, string>, string]>([
    ['ours are exposed', open, ours],
    ['beside its own', exposing('ETag, X-Other'), `ETag, X-Other, ${ours}`],
    [
      'and none twice, in whatever case',
      exposing('ratelimit,RETRY-AFTER'),
      'ratelimit, RETRY-AFTER, RateLimit-Policy',
    ],
    ['nothing where all are', exposing(` ${ours} `), ours],
    ['nothing where everything is', exposing('*'), '*'],
    ['nothing where everything is, among others', exposing('ETag, *'), 'ETag, *'],
    ['ours beside a "*" that with cookies is but a name', exposing('*', credentials), `*, ${ours}`],
    ['ours where it says nothing', exposing(''), ours],
    ['ours where it is empty items', exposing(', ,'), ours],
    ['ours where it is malformed, which a browser ignores', exposing('ETag, X Y'), ours],
    ['ours where it is not even ASCII', exposing('\xfc'), ours],
  ])('%s', (_, fields, expected) => {
    expect(exposed(fields)).toBe(expected)
  })

  test.each<[HeaderSet[] | 'off', string]>([
    [['draft-6'], 'RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset'],
    [
      ['draft-11', { prefix: 'X-RateLimit-', reset: 'iso' }],
      'RateLimit-Policy, RateLimit, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset',
    ],
    ['off', ''],
  ])('with the sets %j those', (headers, names) => {
    const expected = [names, 'Retry-After'].filter(Boolean).join(', ')
    expect(exposed(open, parse({ headers }))).toBe(expected)
  })

  test('with degradedHeader that one too', () => {
    expect(exposed(open, parse({ degradedHeader: true }))).toBe(`${ours}, Sluice-Degraded`)
  })

  test('is given no Allow-Origin and no other field', () => {
    const response = withCors(new Response('x', { headers: open }), page, withCookies)
    expect(Object.fromEntries(response.headers)).toEqual({
      'access-control-allow-origin': page,
      'access-control-expose-headers': ours,
      'content-type': 'text/plain;charset=UTF-8',
    })
    expect(withCors(new Response('x'), page, withCookies).headers.has('vary')).toBe(false)
  })

  test('keeps status and body', async () => {
    const response = withCors(new Response('x', { status: 418, headers: open }), page, named)
    expect([response.status, await response.text()]).toEqual([418, 'x'])
    const none = withCors(new Response(null, { status: 304, headers: open }), page, named)
    expect([none.status, none.body]).toEqual([304, null])
  })
})

describe('cors of a configuration', () => {
  const problemOf = (options: unknown) => {
    try {
      parse({ cors: options })
    } catch (error) {
      return (error as ConfigError).message
    }
  }

  test.each<[CorsOptions['origins'], string[]]>([
    [page, [page]],
    ['HTTPS://App.Example.com:443', [page]],
    ['https://bücher.example', ['https://xn--bcher-kva.example']],
    [
      ['*', 'http://localhost:3000'],
      ['*', 'http://localhost:3000'],
    ],
    ['http://[2001:db8::1]:8080', ['http://[2001:db8::1]:8080']],
  ])('%j is %j, as browsers write it', (origins, parsed) => {
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
  ])('%j is refused', (options, message) => {
    expect(problemOf(options)).toMatch(message)
  })
})

test('under Hono’s own cors() a refusal is read by whom that lets, and ours are exposed', async () => {
  const app = new Hono()
  app.use(cors({ origin: page, exposeHeaders: ['ETag'] }))
  // Without a database every decision is the policy's own word.
  app.use(rateLimiter({ policies: [{ name: 'a', limit: 1, window: '1m', onStoreError: 'deny' }] }))
  app.get('/', (c) => c.text('unreached'))
  const response = await app.request('/', { headers: { Origin: page } })
  expect(response.status).toBe(503)
  expect(response.headers.get('access-control-allow-origin')).toBe(page)
  expect(response.headers.get('access-control-expose-headers')).toBe(`ETag, ${ours}`)
})
