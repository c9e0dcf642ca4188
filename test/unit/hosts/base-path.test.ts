/** An origin whose URL has a base path. Clients cannot leave it, and the origin reads the same path as the policies. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import { readings } from '../../../src/core/request/path.ts'
import { useGateway } from '../../support/gateway.ts'
import { isLong } from '../../support/long.ts'

const policies = [{ name: 'login', limit: 1, window: '1d' as const, match: { path: '/login' } }]
const gateway = useGateway({ config: { policies } })
let clients = 0
const newIp = () => `198.18.${++clients >> 8}.${clients & 255}`

/** Sends a target to an origin with a base path. `got` is the path and query that the origin received, if any. */
async function send(target: string, base: string, ip = newIp()) {
  const before = gateway.origin.requests()
  const ORIGIN = gateway.origin.url + base
  const response = await gateway.fetch(target, { ip }, { ORIGIN })
  const body = await response.text()
  const reached = gateway.origin.requests() > before
  return {
    status: response.status,
    body,
    got: reached ? (JSON.parse(body) as Echo).url : undefined,
  }
}

describe.each([
  { base: '', written: '' },
  { base: '', written: '/' },
  { base: '/app', written: '/app' },
  { base: '/app', written: '/app/' },
  { base: '/b/%7Eshop', written: '/b/%7Eshop' },
])('the base path "$written"', ({ base, written }) => {
  async function expectSamePath(target: string) {
    const { status, got } = await send(target, written)
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
    const matched = readings(pathname).map((one) => (normalBase + one).replace(/(.)\/$/, '$1'))
    // After `//` policies also match a path that begins after a host. The origin gets no such target, because it begins with the base.
    if (pathname.startsWith('//')) expect(matched).toEqual(expect.arrayContaining(readings(path)))
    else expect(readings(path)).toEqual(matched)
  }

  test('The origin reads each of these targets as the policies do.', async () => {
    const targets = [
      ...['/', '/?', '/?x=/../y', '/a//b/', '//a', '/a%2Fb/%6c?x=%20&y=a+b', '/@evil.example'],
      ...['/http://evil.example/', '/a;x=1/b', '/../x', '/../../x', '/../app/x', '/%2e%2e/app/x'],
      ...['/.%2E/app/x', '/x/../../app/x', '/..\\app/x', '/\\..\\app\\x', '/../app'],
      ...['/../app/../..', '/../b/%7Eshop/x', '/..%2Fapp%2Fx', '/%2e%2e%2fapp/x', '/..%5Capp%5Cx'],
      ...['/..;/app/x', '/..;a=1/app/x', '/x/..;/..;/app/x', '/x/..%2F..%2Fapp/x', '/x%2F..%2Fy'],
      ...['/x/..;/y', '/%252e%252e/app/x', '/x/../y?z=/..'],
    ]
    for (const target of targets) await expectSamePath(target)
  })

  test('The origin reads any spelling of a path as the policies do.', async () => {
    const part = fc.constantFrom(
      ...['/', '\\', '%2f', '%5C', '..', '.', '%2e%2e', '.%2E', ';', '%3b', 'app', 'x', '%61pp'],
    )
    const target = fc
      .array(part, { minLength: 1, maxLength: 9 })
      .map((parts) => `/${parts.join('')}`)
    await fc.assert(fc.asyncProperty(target, expectSamePath), { numRuns: isLong ? 1000 : 100 })
  })

  test('A client cannot reach the login page of the origin without its quota, however it spells the target.', async () => {
    const loginOfOrigin = (got = '') => readings(got).includes(readings(`${base}/login`)[0]!)
    for (const target of [
      ...['/../app/login', '/%2e%2e/app/login', '/x/../../app/login', '/..\\app/login'],
      ...['/..%2Fapp%2Flogin', '/..;/app/login', '/../login', '/x/../login', '/%2e%2e/%6Cogin'],
    ]) {
      const ip = newIp()
      expect(await send('/login', written, ip)).toMatchObject({ status: 200, got: `${base}/login` })
      const { got } = await send(target, written, ip)
      expect([target, loginOfOrigin(got)]).toEqual([target, false])
    }
  })
})

test('A path that may leave the base path gets a 400 with the reason, and charges nothing.', async () => {
  const ip = newIp()
  const { status, body, got } = await send('/..%2Flogin', '/app', ip)
  expect([status, got]).toEqual([400, undefined])
  expect(JSON.parse(body)).toMatchObject({
    title: 'Bad Request',
    detail: expect.stringContaining('leaves the base path of the origin'),
  })
  expect((await send('/login', '/app', ip)).status).toBe(200)
})
