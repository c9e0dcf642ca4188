/** An origin whose URL has a base path. Clients cannot leave it, and the origin reads the same path as the policies. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Echo, type RunningOrigin, startOrigin } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { readings } from '../../src/request/path.ts'
import { raw, request } from '../support/raw-http.ts'

const policies = [{ name: 'login', limit: 1, window: '1d' as const, match: { path: '/login' } }]
let clients = 0
const newIp = () => `198.18.${++clients >> 8}.${clients & 255}`

describe.each([
  { base: '', origin: (url: string) => url },
  { base: '', origin: (url: string) => `${url}/` },
  { base: '/app', origin: (url: string) => `${url}/app` },
  { base: '/app', origin: (url: string) => `${url}/app/` },
  { base: '/b/%7Eshop', origin: (url: string) => `${url}/b/%7Eshop` },
])('the base path "$base"', ({ base, origin: originOf }) => {
  let origin: RunningOrigin
  let stack: Stack
  beforeAll(async () => {
    origin = await startOrigin()
    stack = await startStack({ config: { policies }, env: { ORIGIN: originOf(origin.url) } })
  })
  afterAll(async () => {
    await stack.stop()
    await origin.close()
  })

  /** Sends a target unchanged. `got` is the path and query that the origin received, if any. */
  async function send(target: string, ip = '203.0.113.7') {
    const before = origin.requests()
    const bytes = request(target, 'Host: a', `CF-Connecting-IP: ${ip}`)
    const text = await raw(stack.worker.directUrl, bytes)
    const status = Number(text.split(' ')[1])
    const reached = origin.requests() > before
    const body = text.slice(text.indexOf('{\n'), text.lastIndexOf('}') + 1)
    return { status, got: reached ? (JSON.parse(body) as Echo).url : undefined }
  }

  async function expectSamePath(target: string) {
    const { status, got } = await send(target, newIp())
    const { pathname } = new URL(`http://a${target}`)
    if (got === undefined) {
      // Sluice only refuses paths that some origins resolve to a path above the base.
      expect([target, status, base]).toEqual([target, 400, expect.stringMatching(/./)])
      expect(decodeURIComponent(pathname)).toContain('..')
      return
    }
    expect(status).toBe(200)
    expect(got.startsWith(base)).toBe(true)
    const path = got.split('?')[0]!
    // In every reading, the path after the base is the path that the policies matched.
    expect(readings(path.slice(base.length))).toEqual(readings(pathname))
    // In every reading, the whole path is the base followed by that path.
    const [normalBase] = base ? readings(base) : ['']
    expect(readings(path)).toEqual(
      readings(pathname).map((reading) => (normalBase + reading).replace(/(.)\/$/, '$1')),
    )
  }

  test.each([
    '/',
    '/?',
    '/?x=/../y',
    '/a//b/',
    '//a',
    '/a%2Fb/%6c?x=%20&y=a+b',
    '/@evil.example',
    '/http://evil.example/',
    '/a;x=1/b',
    '/../x',
    '/../../x',
    '/../app/x',
    '/%2e%2e/app/x',
    '/.%2E/app/x',
    '/x/../../app/x',
    '/..\\app/x',
    '\\..\\app\\x',
    '/../app',
    '/../app/../..',
    '/../b/%7Eshop/x',
    '/..%2Fapp%2Fx',
    '/%2e%2e%2fapp/x',
    '/..%5Capp%5Cx',
    '/..;/app/x',
    '/..;a=1/app/x',
    '/x/..;/..;/app/x',
    '/x/..%2F..%2Fapp/x',
    '/x%2F..%2Fy',
    '/x/..;/y',
    '/%252e%252e/app/x',
    '/x/../y?z=/..',
  ])('The origin reads the target %s as the policies do.', async (target) => {
    await expectSamePath(target.startsWith('/') ? target : `/${target}`)
  })

  test('The origin reads any spelling of a path as the policies do.', async () => {
    const part = fc.constantFrom(
      ...['/', '\\', '%2f', '%5C', '..', '.', '%2e%2e', '.%2E', ';', '%3b', 'app', 'x', '%61pp'],
    )
    const target = fc
      .array(part, { minLength: 1, maxLength: 9 })
      .map((parts) => `/${parts.join('')}`)
    await fc.assert(fc.asyncProperty(target, expectSamePath), { numRuns: 250 })
  })

  test.each([
    '/../app/login',
    '/%2e%2e/app/login',
    '/x/../../app/login',
    '/..\\app/login',
    '/..%2Fapp%2Flogin',
    '/..;/app/login',
    '/../login',
    '/x/../login',
    '/%2e%2e/%6Cogin',
  ])(
    'A client cannot reach the login page of the origin through %s without its quota.',
    async (target) => {
      const ip = newIp()
      expect(await send('/login', ip)).toEqual({ status: 200, got: `${base}/login` })
      const loginOfOrigin = (got = '') => readings(got).includes(readings(`${base}/login`)[0]!)
      for (let i = 0; i < 3; i++) {
        const { got } = await send(target, ip)
        expect(loginOfOrigin(got)).toBe(false)
      }
    },
  )
})

test('A path that may leave the base path gets a 400 with the reason, and charges nothing.', async () => {
  const origin = await startOrigin()
  const stack = await startStack({
    config: { policies: [{ name: 'all', limit: 1, window: '1d' }] },
    env: { ORIGIN: `${origin.url}/app` },
  })
  const line = 'CF-Connecting-IP: 198.51.100.9'
  for (let i = 0; i < 2; i++) {
    const answer = await raw(stack.url, request('/..%2Fsecret', 'Host: a', line))
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(answer).toContain('"title":"Bad Request"')
    expect(answer).toContain('leaves the base path of the origin')
  }
  expect(origin.requests()).toBe(0)
  const allowed = await raw(stack.url, request('/', 'Host: a', line))
  expect(allowed).toMatch(/^HTTP\/1.1 200 /)
  await stack.stop()
  await origin.close()
})
