/** Penalties: a client with too many refusals is banned, and other clients are unaffected. */

import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { Decision, Reason } from '../../../src/core/base/decision.ts'
import type { AlgorithmName, PolicyOptions } from '../../../src/core/config/options.ts'
import { algorithms } from '../../../src/core/connection/algorithms/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { commandsBetween } from '../../support/commands.ts'
import { bans } from '../../support/features.ts'
import { useGateway } from '../../support/gateway.ts'

const policy = (name: string, options: Partial<PolicyOptions> = {}): PolicyOptions => ({
  name,
  algorithm: 'fixed-window',
  limit: 2,
  window: '10s',
  match: { path: `/${name}/*` },
  ...options,
})
/** The ban is longer than the window, so the wait of a refusal is the wait of the ban. */
const penalty = { after: 3, within: '1m', ban: '1h' } as const
const names = Object.keys(algorithms) as AlgorithmName[]

const clock = new TestClock()
const gateway = useGateway({
  clock,
  config: {
    policies: [
      policy('brief', { window: '1s', penalty: { ...penalty, ban: '2s', max: '4s' } }),
      policy('long', { penalty }),
      policy('shut', { window: '1s', penalty: { ...penalty, after: 1 } }),
      policy('narrow', { match: { path: '/long/narrow' }, limit: 1000 }),
      policy('trial', { mode: 'shadow', penalty }),
      policy('quiet', { limit: 1000, penalty }),
      policy('quieter', { limit: 1000, match: { path: '/quiet/*' }, penalty }),
      policy('never', { penalty, cost: [{ path: '/never/big', cost: 3 }] }),
      ...([...names, 'gcra'] as const).map((algorithm) =>
        policy(`five-${algorithm}`, {
          algorithm,
          limit: algorithm === 'gcra' ? 1 : 1000,
          window: '1d',
          match: { path: '/five/*' },
          penalty,
        }),
      ),
    ],
  },
})

const at = '203.0.113.7'
async function get(path: string, ip = at) {
  const response = await gateway.fetch(path, { ip })
  const isProblem = response.headers.get('content-type') === 'application/problem+json'
  const body = (await response.json()) as Record<string, unknown>
  return {
    status: response.status,
    wait: Number(response.headers.get('retry-after')),
    fields: response.headers.get('ratelimit'),
    ms: Number(body.retryAfterMs),
    problem: isProblem ? String(body.type).split('#')[1] : undefined,
    body,
  }
}
const getRepeatedly = async (path: string, times: number) => {
  const answers: Awaited<ReturnType<typeof get>>[] = []
  for (let time = 0; time < times; time++) answers.push(await get(path))
  return answers
}

test('The third refusal starts a ban with its own problem type, and Retry-After is the rest of the ban.', async () => {
  const answers = await getRepeatedly('/long/any', 5)
  expect(answers.map(({ problem }) => problem)).toEqual([
    ...[undefined, undefined, 'quota-exceeded', 'quota-exceeded', 'abnormal-usage-detected'],
  ])
  const { status, body, ms } = answers[4]!
  expect([status, body.title, body['violated-policies']]).toEqual([
    ...[429, 'Abnormal usage detected', ['long']],
  ])
  expect(body.detail).toBe('All requests are refused for another 60 minutes.')
  expect(ms).toBe(3_600_000)
  clock.advance(1000)
  const later = await get('/long/any')
  expect([later.ms <= ms - 1000, later.wait]).toEqual([true, Math.ceil(later.ms / 1000)])
  // The ban holds for every request of this client under the policy, and for no other request or client.
  expect((await get('/long/narrow')).body['violated-policies']).toEqual(['long'])
  expect((await get('/quiet/any')).status).toBe(200)
  expect((await get('/long/any', '203.0.113.8')).status).toBe(200)
})

test('Bans double up to their maximum, and a client that waits for the end of a ban passes.', async () => {
  const lengths: number[] = []
  for (let ban = 0; ban < 3; ban++) {
    let banned: Awaited<ReturnType<typeof get>>[] = []
    while (banned.length === 0) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => get('/brief/any')))
      banned = answers.filter(({ problem }) => problem === 'abnormal-usage-detected')
    }
    lengths.push(Math.max(...banned.map(({ ms }) => ms)))
    if (ban === 2) break
    clock.advance((await get('/brief/any')).ms)
    expect((await get('/brief/any')).status).toBe(200)
  }
  expect(lengths).toEqual([2000, 4000, 4000])
})

test('A request whose cost exceeds the limit has a retryAfterMs of null, also during a ban.', async () => {
  const answers = await getRepeatedly('/never/big', 4)
  expect(answers.map(({ problem }) => problem)).toEqual([
    ...['quota-exceeded', 'quota-exceeded', 'abnormal-usage-detected', 'abnormal-usage-detected'],
  ])
  const { body } = answers[3]!
  expect(body.retryAfterMs).toBe(null)
  expect(body.detail).toBe('All requests are refused for another 60 minutes.')
})

test('A shadow policy bans no client, and reports the clients that it would ban.', async () => {
  for (const { status } of await getRepeatedly('/trial/any', 6)) expect(status).toBe(200)
  const { body } = await get('/trial/any')
  expect((body.headers as Record<string, string>)['sluice-shadow']).toBe('"trial"')
})

test('A penalty adds no Redis command to an admitted request.', async () => {
  await get('/quiet/any')
  const spent = await commandsBetween(gateway.redis.url, () => getRepeatedly('/quiet/any', 5))
  expect(spent).toEqual({ evalsha: 5, get: 5, set: 5 }) // the bridge passes the time
})

test('Five policies with penalties need one HTTP request for each decision, also if one of them bans.', async () => {
  const before = gateway.httpRequests()
  const answers = await getRepeatedly('/five/any', 5)
  expect(answers.map(({ status }) => status)).toEqual([200, 429, 429, 429, 429])
  expect(answers[4]!.body['violated-policies']).toEqual(['five-gcra'])
  expect(answers[4]!.problem).toBe('abnormal-usage-detected')
  expect(gateway.httpRequests() - before).toBe(5)
})

test('During a ban every request is refused, also if the limit has units.', async () => {
  await Promise.all(Array.from({ length: 10 }, () => get('/shut/any')))
  clock.advance(1100) // the window has ended, and the ban has not
  const { problem, fields } = await get('/shut/any')
  expect(problem).toBe('abnormal-usage-detected')
  expect(fields).toMatch(/^"shut";r=0;t=3\d\d\d$/)
})

test('The middleware gives the reason of each decision to the app.', async () => {
  const reasons: Reason[] = []
  const app = new Hono<{ Variables: { rateLimit: Decision } }>()
  app.use(async (c, next) => {
    await next()
    reasons.push(c.get('rateLimit').reason)
  })
  app.use(
    rateLimiter({
      clientAddress: 'cloudflare',
      deadline: '10s',
      policies: [policy('here', { limit: 1, penalty })],
      use: [bans()],
    }),
  )
  app.get('*', (c) => c.text('ok'))
  for (let time = 0; time < 4; time++)
    await app.request('/here/any', { headers: { 'cf-connecting-ip': at } }, gateway.env)
  expect(reasons).toEqual(['within-limit', 'limited', 'limited', 'banned'])
})
