/** Observation through the whole stack: what the isolate counts equals what was sent. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startStack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import type { Stats } from '../../src/observe/index.ts'
import { API_TOKEN, OPERATE } from '../support/api-stack.ts'

const config: ConfigOptions = {
  api: { callers: { limit: 1_000, window: '1h' } },
  deny: { name: 'abuse', path: '/denied' },
  policies: [
    { name: 'few', limit: 3, window: '1h', match: { path: '/few' } },
    { name: 'trial', limit: 1, window: '1h', match: { path: '/trial' }, mode: 'shadow' },
  ],
}
const env = { SLUICE_API_TOKEN: API_TOKEN, SLUICE_OPERATE_TOKEN: OPERATE }

let stack: Awaited<ReturnType<typeof startStack>>
let plain: typeof stack
beforeAll(async () => {
  stack = await startStack({ config, env, observe: { to: 'log', every: '1s' } })
  plain = await startStack({ config, env })
})
afterAll(async () => {
  await stack?.stop()
  await plain?.stop()
})

let clients = 40
const newIp = () => `198.51.100.${++clients}`
const authorized = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
const get = async (path: string, ip: string, { fetch } = stack) => {
  const response = await fetch(path, { ip })
  await response.arrayBuffer()
  return response.status
}
const stats = async () =>
  (await (await stack.fetch('/_sluice/v1/stats', authorized(OPERATE))).json()) as Stats

/** The decisions of each series. */
const decisionsOf = ({ total }: Stats) =>
  Object.fromEntries(
    total.series.map(({ policy, outcome, decidedBy, decisions }) => [
      `${policy} ${outcome} ${decidedBy}`,
      decisions,
    ]),
  )

test('The statistics equal the requests that were sent, also those of the decision API.', async () => {
  for (let n = 0; n < 6; n++) await get('/few', '198.51.100.1')
  for (let n = 0; n < 4; n++) await get('/few', '198.51.100.2')
  for (let n = 0; n < 3; n++) await get('/trial', '198.51.100.1')
  for (let n = 0; n < 2; n++) await get('/denied', '198.51.100.1')
  await get('/free', '198.51.100.1')
  const ask = (mode: string) => ({ policy: 'few', key: '198.51.100.9', mode })
  const decided = await stack.fetch('/_sluice/v1/decide', {
    ...authorized(API_TOKEN),
    method: 'POST',
    body: JSON.stringify([ask('take'), ask('peek')]),
  })
  expect(decided.status).toBe(200)
  const auth = await stack.fetch('/_sluice/v1/auth', {
    headers: {
      'Sluice-Token': API_TOKEN,
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': '/few',
      'X-Forwarded-Host': 'www.example.com',
      'X-Forwarded-For': '198.51.100.9',
    },
  })
  expect(auth.status).toBe(200)
  const found = await stats()
  expect(decisionsOf(found)).toEqual({
    'few allowed store': 3 + 3 + 1 + 1,
    'few limited store': 1 + 1,
    'few limited cache': 2,
    'trial allowed store': 1,
    'trial would-refuse store': 2,
    'abuse denied list': 2,
    ' allowed list': 1,
  })
  expect(found.total.offenders.map(({ policy, refusals }) => [policy, refusals])).toEqual([
    ['few', 3],
    ['few', 1],
  ])
  expect(found.databases).toEqual([{ circuit: 'closed' }])
  const { http, commands } = stack.bridge.stats()[stack.bridge.token]!
  const { calls, billedCommands, latency } = found.total.store
  expect([calls, billedCommands]).toEqual([http, commands])
  expect(latency.counts.reduce((sum, count) => sum + count, 0)).toBe(calls)
})

test('The same requests make the same calls and commands without observe.', async () => {
  const used = ({ bridge }: typeof stack) => {
    const { http, commands } = bridge.stats()[bridge.token] ?? { http: 0, commands: 0 }
    return [http, commands]
  }
  const spent: number[][] = []
  for (const one of [stack, plain]) {
    await get('/few', '198.51.100.30', one) // loads the script
    const before = used(one)
    for (let n = 0; n < 6; n++) await get('/few', '198.51.100.31', one)
    const after = used(one)
    spent.push(after.map((value, index) => value - before[index]!))
  }
  expect(spent[0]).toEqual(spent[1])
})

test('A line of the log has the counts since the previous one, and no address.', async () => {
  const linesOf = () =>
    stack.worker.logs
      .filter((line) => line.includes('"event":"decisions"'))
      .map((line) => JSON.parse(line.slice(line.indexOf('{'))))
  const [one, other] = [newIp(), newIp()]
  await get('/few', one)
  await sleep(1_100)
  const earlier = linesOf().length
  await get('/few', one)
  await expect.poll(() => linesOf().length).toBeGreaterThan(earlier)
  const before = linesOf().length
  await sleep(1_100)
  for (let n = 0; n < 5; n++) await get('/few', other)
  await expect.poll(() => linesOf().length).toBeGreaterThan(before)
  const line = linesOf()[before]
  expect(line.series).toEqual([
    expect.objectContaining({ policy: 'few', outcome: 'allowed', decisions: 1, units: 1 }),
  ])
  const text = JSON.stringify(linesOf())
  expect(text).not.toContain('198.51.100')
  const sum = linesOf()
    .flatMap(({ series }) => series)
    .reduce((total: number, { decisions }: { decisions: number }) => total + decisions, 0)
  expect(sum).toBeLessThanOrEqual((await stats()).total.series.reduce((n, s) => n + s.decisions, 0))
})

test('The statistics need the token of an operator, and exist only with observe.', async () => {
  expect((await stack.fetch('/_sluice/v1/stats')).status).toBe(401)
  expect((await stack.fetch('/_sluice/v1/stats', authorized(API_TOKEN))).status).toBe(403)
  expect((await plain.fetch('/_sluice/v1/stats', authorized(OPERATE))).status).toBe(404)
})
