/** The Hono middleware and the app's handlers read the same body. */

import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { bodies } from '../../../src/features/bodies/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { bans } from '../../support/features.ts'
import { configOf, useDatabase } from '../../support/node-servers.ts'

useDatabase()

const options = (rest: Partial<ConfigOptions> = {}) =>
  configOf({
    policies: [{ name: 'tools', limit: 1, window: '1h', key: 'body:name', onMissingKey: 'refuse' }],
    use: [bodies(), bans()],
    ...rest,
  })
const headers = { 'content-type': 'application/json' }
const request = (body: string) => ({ method: 'POST', body, headers })

test('A handler reads the body after the limiter, in every way that Hono offers.', async () => {
  const app = new Hono().use(rateLimiter(options()))
  app.post('/json', async (c) => c.json(await c.req.json()))
  app.post('/text', async (c) => c.text(await c.req.text()))
  app.post('/raw', (c) => new Response(c.req.raw.body))
  app.post('/parsed', async (c) => c.text(String((await c.req.arrayBuffer()).byteLength)))
  for (const [path, body, answer] of [
    ['/json', '{"name":"a"}', '{"name":"a"}'],
    ['/text', '{ "name" : "b" }', '{ "name" : "b" }'],
    ['/raw', '{"name":"c"}\n', '{"name":"c"}\n'],
    ['/parsed', '{"name":"d"}', '12'],
  ] as const) {
    const response = await app.request(path, request(body))
    expect([response.status, await response.text()]).toEqual([200, answer])
    expect((await app.request(path, request(body))).status).toBe(429)
  }
})

test('Two limiters of one app read the same body.', async () => {
  const app = new Hono().use(rateLimiter(options()), rateLimiter(options()))
  app.post('/', async (c) => c.text(await c.req.text()))
  expect(await (await app.request('/', request('{"name":"a"}'))).text()).toBe('{"name":"a"}')
})

test('A body that earlier middleware has read is unreadable.', async () => {
  const app = new Hono().use(async (c, next) => {
    await c.req.text()
    await next()
  }, rateLimiter(options()))
  app.post('/', (c) => c.text('ok'))
  expect((await app.request('/', request('{"name":"a"}'))).status).toBe(403)
})

test('createSluice leaves the body of the request readable.', async () => {
  const sluice = createSluice(options())
  const sent = new Request('https://a.test/', request('{"name":"a"}'))
  expect((await sluice.check(sent)).allowed).toBe(true)
  expect(await sent.text()).toBe('{"name":"a"}')
  expect(
    (await sluice.check(new Request('https://a.test/', request('{"name":"a"}')))).allowed,
  ).toBe(false)
})

test('A body that arrives later than the deadline is counted, because Redis still has half of the deadline.', async () => {
  const deadline = '2s'
  const sluice = createSluice(options({ deadline }))
  const slow = () =>
    new Request('https://a.test/', {
      ...request(''),
      body: new ReadableStream({
        async start(controller) {
          await new Promise((resolve) => setTimeout(resolve, 2_100))
          controller.enqueue(new TextEncoder().encode('{"name":"a"}'))
          controller.close()
        },
      }),
      duplex: 'half',
    } as RequestInit)
  const first = await sluice.check(slow())
  expect(first.decision).toMatchObject({ allowed: true, reason: 'within-limit' })
  expect((await sluice.check(slow())).decision).toMatchObject({ allowed: false })
})

describe('A client that withholds its body', () => {
  /** A request whose body never ends. */
  const withheld = () => {
    let isRead = false
    const pull = () => {
      isRead = true
    }
    const body = new ReadableStream({ pull }, { highWaterMark: 0 })
    const init = { ...request(''), body, duplex: 'half' } as RequestInit
    return { sent: new Request('https://a.test/', init), isRead: () => isRead }
  }
  const tools = { limit: 5, window: '1h', key: 'body:name', match: { method: 'POST' } } as const
  const all = { name: 'all', limit: 1, window: '1h', key: 'global' } as const
  const empty = () => new Request('https://a.test/')

  test('gets its refusal from the denial cache at once.', async () => {
    const sluice = createSluice(options({ policies: [{ ...tools, name: 'tools' }, all] }))
    for (const allowed of [true, false]) {
      expect((await sluice.check(empty())).allowed).toBe(allowed)
    }
    const { sent, isRead } = withheld()
    const { decision } = await sluice.check(sent)
    expect(decision).toMatchObject({ reason: 'limited', limits: [{ policy: 'all' }] })
    expect(isRead()).toBe(false)
  })

  test('gets the refusal of a missing key at once.', async () => {
    const refuse = { ...all, key: 'cookie:session', onMissingKey: 'refuse' } as const
    const sluice = createSluice(options({ policies: [{ ...tools, name: 'tools' }, refuse] }))
    const { sent, isRead } = withheld()
    const { decision } = await sluice.check(sent)
    expect(decision.denied).toEqual({ by: 'all', missing: 'cookie:session' })
    expect(isRead()).toBe(false)
  })

  test('is read if its refusal may count towards a ban.', async () => {
    const penalty = { after: 1, within: '1m', ban: '1m' } as const
    const policies = [{ ...tools, name: 'tools', penalty }, all]
    const sluice = createSluice(options({ policies, use: [bans(), bodies({ timeout: '50ms' })] }))
    for (const allowed of [true, false]) {
      expect((await sluice.check(empty())).allowed).toBe(allowed)
    }
    const { sent, isRead } = withheld()
    expect((await sluice.check(sent)).allowed).toBe(false)
    expect(isRead()).toBe(true)
  })
})
