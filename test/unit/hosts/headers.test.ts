/** Limit fields in responses of the gateway, if the origin sends limit fields, too. */
import { parseRateLimit } from 'ratelimit-header-parser'
import { parseDictionary, parseList } from 'structured-headers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import type { FetchOptions } from '../../../tools/stack.ts'
import { useGateway } from '../../support/gateway.ts'
import { startScriptedOrigin } from '../../support/scripted-origin.ts'

/** Answers with `originFields`. A list of values becomes several lines. */
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
let originFields: Record<string, string | string[]> = {}
const gateway = useGateway({ config: { policies: [] } })
beforeAll(async () => {
  origin = await startScriptedOrigin((_url, response) =>
    response.writeHead(200, originFields).end('of the origin'),
  )
})
afterEach(() => {
  originFields = {}
})
afterAll(() => origin?.close())

const policies: ConfigOptions['policies'] = [
  { name: 'minute', algorithm: 'fixed-window', limit: 10, window: '1m' },
  { name: 'day', algorithm: 'fixed-window', limit: 1000, window: '1d' },
]
const page = 'https://app.example.com'

/** An isolate with this configuration in front of the origin of this file. */
function isolateOf(config: Partial<ConfigOptions>) {
  const isolate = gateway.start({ policies, ...config })
  return {
    fetch: (path: string, options: FetchOptions) =>
      isolate.fetch(path, options, { ORIGIN: origin.url }),
  }
}

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const limitFields = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => /ratelimit|retry/.test(name)))

describe('draft-11', () => {
  const isolate = isolateOf({ cors: { origins: page } })

  test('Fields of draft-11 are appended to the lists of the origin.', async () => {
    originFields = {
      'RateLimit-Policy': '"origin";q=5;w=1',
      RateLimit: ['"origin";r=1;t=1', '"b";r=2'],
    }
    const { headers } = await isolate.fetch('/', { ip: newIp() })
    const names = (field: string) => parseList(headers.get(field)!).map(([item]) => item)
    expect(names('ratelimit-policy')).toEqual(['origin', 'minute', 'day'])
    expect(names('ratelimit')).toEqual(['origin', 'b', 'minute'])
  })

  test('Limit fields are exposed to pages to which the origin allows access.', async () => {
    originFields = {
      'Access-Control-Allow-Origin': 'https://other.example',
      'Access-Control-Expose-Headers': 'ETag',
    }
    const { headers } = await isolate.fetch('/', { ip: newIp(), headers: { Origin: page } })
    expect(headers.get('access-control-allow-origin')).toBe('https://other.example')
    expect(headers.get('access-control-expose-headers')).toBe(
      'ETag, RateLimit-Policy, RateLimit, Retry-After',
    )
    expect(headers.has('vary')).toBe(false)
    originFields = {}
    const closed = await isolate.fetch('/', { ip: newIp(), headers: { Origin: page } })
    expect([...closed.headers.keys()].join()).not.toContain('access-control')
  })

  test('Pages of the cors configuration can read a refusal.', async () => {
    const ip = newIp()
    for (let i = 0; i < 10; i++) await (await isolate.fetch('/', { ip })).arrayBuffer()
    const { status, headers } = await isolate.fetch('/', { ip, headers: { Origin: page } })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([429, page])
    expect(headers.get('vary')).toBe('Origin')
    expect(headers.get('access-control-expose-headers')).toContain('Retry-After')
    const other = await isolate.fetch('/', { ip, headers: { Origin: 'https://evil.example' } })
    expect([other.status, other.headers.has('access-control-allow-origin')]).toEqual([429, false])
  })
})

describe('an origin that fails', () => {
  const isolate = gateway.start({ policies, cors: { origins: page }, originTimeout: '300ms' })

  test.each([
    [502, '/reset/any'],
    [504, '/slow/5000'],
  ])(
    'Pages of the cors configuration can read a %d for a failed origin (%s).',
    async (status, path) => {
      const response = await isolate.fetch(path, { ip: newIp(), headers: { Origin: page } })
      expect(response.status).toBe(status)
      expect(response.headers.get('access-control-allow-origin')).toBe(page)
      expect(response.headers.get('access-control-expose-headers')).toBe(
        'RateLimit-Policy, RateLimit, Retry-After',
      )
      expect(response.headers.get('ratelimit')).toMatch(/^"minute";r=9;/)
    },
  )
})

describe('draft-7 and X-RateLimit- with ISO 8601', () => {
  const isolate = isolateOf({ headers: ['draft-7', { prefix: 'X-RateLimit-', reset: 'iso' }] })

  test('Fields of draft-7 and X-RateLimit fields with ISO 8601 report the same state.', async () => {
    const { headers } = await isolate.fetch('/', { ip: newIp() })
    expect(headers.get('ratelimit-policy')).toBe('10;w=60, 1000;w=86400')
    const state = parseDictionary(headers.get('ratelimit')!)
    expect(state.get('remaining')![0]).toBe(9)
    const reset = Date.now() + (state.get('reset')![0] as number) * 1000
    const { ratelimit: _, ...xFields } = Object.fromEntries(headers)
    const x = parseRateLimit(xFields, { reset: 'date' })!
    expect(x).toMatchObject({ limit: 10, remaining: 9 })
    expect(Math.abs(x.reset!.getTime() - reset)).toBeLessThan(3000)
  })

  test('The reset in the fields of a refusal equals Retry-After.', async () => {
    const ip = newIp()
    for (let i = 0; i < 10; i++) await (await isolate.fetch('/', { ip })).arrayBuffer()
    const { status, headers } = await isolate.fetch('/', { ip })
    expect(status).toBe(429)
    const retryAfter = headers.get('retry-after')
    expect(headers.get('ratelimit')).toBe(`limit=10, remaining=0, reset=${retryAfter}`)
    const reset = Date.parse(headers.get('x-ratelimit-reset')!)
    expect(reset - Date.now()).toBeGreaterThan(Number(retryAfter) * 1000 - 3000)
  })
})

describe('off', () => {
  const isolate = isolateOf({ headers: 'off', cors: { origins: '*' } })

  test('With headers off only Retry-After is sent.', async () => {
    const ip = newIp()
    for (let i = 0; i < 10; i++) {
      expect(limitFields(await isolate.fetch('/', { ip }))).toEqual({})
    }
    const refused = await isolate.fetch('/', { ip, headers: { Origin: page } })
    expect(refused.status).toBe(429)
    expect(limitFields(refused)).toEqual({ 'retry-after': expect.stringMatching(/^\d+$/) })
    expect(refused.headers.get('access-control-allow-origin')).toBe('*')
    expect(refused.headers.get('access-control-expose-headers')).toBe('Retry-After')
    expect(refused.headers.has('vary')).toBe(false)
  })

  test('With headers off the limit fields of the origin are unchanged.', async () => {
    originFields = { RateLimit: 'limit=1, remaining=1000, reset=1' }
    expect(limitFields(await isolate.fetch('/', { ip: newIp() }))).toEqual({
      ratelimit: 'limit=1, remaining=1000, reset=1',
    })
  })
})
