/** sluice/testing with a Worker in workerd and with an app in this process, on a real Redis. */
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rateLimiter } from '../../src/index.ts'
import { limits } from '../../src/limits/limits.ts'
import { type SluiceTest, type StartSluiceOptions, startSluice } from '../../src/testing/start.ts'
import app from './testing-app.ts'

/** wrangler needs seconds to build a Worker, and more on a busy machine. */
const SLOW_MS = 90_000
const DAY_MS = 86_400_000
const worker = { main: 'test/worker/testing-app.ts' }
const env = { MINE: 'yes' }
const places: [place: string, options: StartSluiceOptions][] = [
  ['a Worker in workerd', { worker, env }],
  ['an app in this process', { app, env }],
]

/** The HTTP requests that the bridge has answered. */
async function callsOf({ env }: SluiceTest): Promise<number> {
  const headers = { authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN}` }
  const response = await fetch(`${env.UPSTASH_REDIS_REST_URL}/__stats`, { headers })
  return ((await response.json()) as { http: number }).http
}

describe.each(places)('%s', (_, options) => {
  let sluice: SluiceTest
  beforeAll(async () => {
    sluice = await startSluice(options)
  }, SLOW_MS)
  afterAll(() => sluice?.stop())

  let clients = 0
  let ip: string
  beforeEach(() => {
    ip = `198.51.100.${++clients}`
  })
  const statusOf = async (path: string, client = ip) => {
    const response = await sluice.fetch(path, { ip: client })
    await response.arrayBuffer()
    return response.status
  }
  const admitted = async (path: string, times: number, client = ip) => {
    let count = 0
    for (let time = 0; time < times; time++) if ((await statusOf(path, client)) === 200) count++
    return count
  }
  const waitOf = async (path: string) =>
    Number((await sluice.fetch(path, { ip })).headers.get('retry-after'))

  test.each(['daily', 'sliding', 'log', 'bucket'])(
    'The daily quota of the policy %s refuses until its wait is over, and admits everything two days later.',
    async (name) => {
      expect(await admitted(`/${name}`, 20)).toBe(10)
      const wait = await waitOf(`/${name}`)
      await sluice.advance((wait - 30) * 1000)
      expect(await statusOf(`/${name}`)).toBe(429)
      await sluice.advance('2d')
      expect(await admitted(`/${name}`, 20)).toBe(10)
    },
  )

  test('After ten refusals of the denial cache, a fixed window of a day opens again exactly a day later.', async () => {
    expect(await admitted('/daily', 11)).toBe(10)
    const before = await callsOf(sluice)
    expect(await admitted('/daily', 10)).toBe(0)
    expect(await callsOf(sluice)).toBe(before)
    await sluice.advance('1d')
    expect(await admitted('/daily', 11)).toBe(10)
  })

  test('A quota of a calendar month admits again on the first of the next month.', async () => {
    expect(await admitted('/monthly', 12)).toBe(10)
    const today = new Date(sluice.now())
    const next = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1)
    await sluice.advance(next - sluice.now() - 60_000)
    expect(await statusOf('/monthly')).toBe(429)
    await sluice.advance('1m')
    expect(await admitted('/monthly', 12)).toBe(10)
  })

  test('A ban of an hour ends after an hour, and the next one is twice as long.', async () => {
    for (const hours of [1, 2]) {
      expect(await admitted('/banned', 3)).toBe(1)
      expect(await waitOf('/banned')).toBeGreaterThan(hours * 3600 - 10)
      await sluice.advance((hours * 60 - 1) * 60_000)
      expect(await statusOf('/banned')).toBe(429)
      await sluice.advance('61s')
    }
    expect(await statusOf('/banned')).toBe(200)
  })

  test('Concurrency slots that are never released expire.', async () => {
    const held = [await sluice.fetch('/slots', { ip }), await sluice.fetch('/slots', { ip })]
    expect(held.map(({ status }) => status)).toEqual([200, 200])
    expect(await statusOf('/slots')).toBe(429)
    await sluice.advance('4m')
    expect(await statusOf('/slots')).toBe(429)
    await sluice.advance('61s')
    const later = await sluice.fetch('/slots', { ip })
    expect(later.status).toBe(200)
    await Promise.all([...held, later].map((response) => response.body!.cancel()))
  })

  test('A lease ends with its time, and its quota with the day.', async () => {
    expect(await admitted('/leased', 42)).toBe(40)
    await sluice.advance('1d')
    expect(await admitted('/leased', 42)).toBe(40)
  })

  test('The flush deletes counters, bans and what the isolate remembers of them, and keeps the clock.', async () => {
    await admitted('/daily', 12)
    await admitted('/banned', 4)
    await admitted('/leased', 12)
    await sluice.advance('1h')
    await admitted('/banned', 4)
    const before = sluice.now()
    await sluice.flush()
    expect(await admitted('/daily', 12)).toBe(10)
    expect(await statusOf('/banned')).toBe(200)
    expect(await admitted('/leased', 42)).toBe(40)
    const { now } = (await (await sluice.fetch('/clock')).json()) as { now: number }
    expect(now - before).toBeGreaterThanOrEqual(0)
    expect(now - before).toBeLessThan(60_000)
  })

  test('Date.now and new Date follow the clock, and other dates do not change.', async () => {
    await sluice.advance('3w')
    const clock = (await (await sluice.fetch('/clock')).json()) as Record<string, number>
    for (const name of ['now', 'date', 'text']) {
      expect(Math.abs(clock[name]! - sluice.now())).toBeLessThan(5000)
    }
    expect(sluice.now() - Date.now()).toBeGreaterThan(21 * DAY_MS - 5000)
    expect(clock).toMatchObject({ fixed: 2026, isDate: true })
  })

  test('Timers stay real.', async () => {
    const started = performance.now()
    await sluice.advance('52w')
    await sluice.fetch('/clock')
    expect(performance.now() - started).toBeLessThan(5000)
  })

  test('A policy sees the country and the host of a request.', async () => {
    const where = async (init: object, url = '/where') =>
      (await sluice.fetch(url, { ip, ...init })).status
    expect([await where({}), await where({})]).toEqual([200, 200])
    const german = { cf: { country: 'DE' } }
    expect([await where(german), await where(german)]).toEqual([200, 429])
    const url = 'https://www.example.com/where'
    expect([await where({}, url), await where({}, url)]).toEqual([200, 429])
    expect(await where({ ip: '192.0.2.1' }, url)).toBe(200)
  })

  test('A client has one address, however the test writes it.', async () => {
    const request = (init: object) => sluice.fetch('/daily', init)
    expect(
      (await request({ headers: [['CF-Connecting-IP', ip]] })).headers.get('ratelimit'),
    ).toMatch(/r=9;/)
    expect((await request({ ip })).headers.get('ratelimit')).toMatch(/r=8;/)
  })

  test('Another stack in this process has its own clock and counters.', async () => {
    await using other = await startSluice({ app })
    const clockOf = async (stack: SluiceTest) =>
      ((await (await stack.fetch('/clock')).json()) as { now: number }).now
    const refusedAt = async (stack: SluiceTest) => {
      for (let time = 0; time < 10; time++) await stack.fetch('/daily', { ip })
      return (await stack.fetch('/daily', { ip })).status
    }
    expect([await refusedAt(sluice), await refusedAt(other)]).toEqual([429, 429])
    const before = sluice.now()
    await other.advance('600w')
    expect((await other.fetch('/daily', { ip })).status).toBe(200)
    expect(await statusOf('/daily')).toBe(429)
    expect(sluice.now() - before).toBeLessThan(60_000)
    expect((await clockOf(sluice)) - before).toBeLessThan(60_000)
    expect((await clockOf(other)) - Date.now()).toBeGreaterThan(4199 * DAY_MS)
  })

  test('The Worker or app gets the variables, and the default origin answers.', async () => {
    const got = (await (await sluice.fetch('/env')).json()) as Record<string, string>
    expect(got).toMatchObject({ ...sluice.env, MINE: 'yes' })
    const origin = await (await sluice.fetch('/origin')).json()
    expect(origin).toEqual({ status: 200, text: 'Hello from the origin.\n', cookies: [] })
  })

  if (options.worker) {
    test('A Worker whose modules keep Date.now in a variable follows the clock, also after a flush, and its log is recorded.', async () => {
      const captured = async () =>
        ((await (await sluice.fetch('/clock')).json()) as { captured: number }).captured
      await sluice.advance('1d')
      expect(Math.abs((await captured()) - sluice.now())).toBeLessThan(5000)
      await sluice.flush()
      expect(Math.abs((await captured()) - sluice.now())).toBeLessThan(5000)
      await sluice.fetch('/logging')
      expect(sluice.logs).toContain('a line of the Worker')
    })
  }

  test('An outage of Redis can be tested.', async () => {
    expect(await statusOf('/strict')).toBe(200)
    await sluice.stopRedis() // so this is the last test
    expect(await statusOf('/strict')).toBe(503)
  })
})

test('The test can choose the answer of the origin.', async () => {
  await using sluice = await startSluice({
    app,
    async origin(request) {
      const headers = new Headers([
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
      ])
      const text = `${request.method} ${new URL(request.url).search} ${await request.text()}`
      return new Response(text, { status: 401, headers })
    },
  })
  expect(await (await sluice.fetch('/origin')).json()).toEqual({
    status: 401,
    text: 'POST ?query hello',
    cookies: ['a=1', 'b=2'],
  })
})

test('An app for Node.js gets the address of the client as that of its socket.', async () => {
  const policies = [{ name: 'one', limit: 1, window: '1d' } as const]
  const nodeApp = new Hono()
  nodeApp.use(rateLimiter({ clientAddress: 'socket', deadline: '10s', policies }))
  nodeApp.get('/', (c) => c.text('ok'))
  await using sluice = await startSluice({ app: nodeApp })
  const statuses = []
  for (const ip of ['192.0.2.1', '192.0.2.1', '192.0.2.2']) {
    statuses.push((await sluice.fetch('/', { ip })).status)
  }
  expect(statuses).toEqual([200, 429, 200])
})

test('A call of the test itself follows the clock, with what its process remembers and with calendar periods.', async () => {
  await using sluice = await startSluice()
  const quota = limits(
    {
      invites: { limit: 2, window: '1d' },
      reports: { algorithm: 'fixed-window', limit: 1, window: 'month' },
    },
    { env: sluice.env },
  )
  for (const [name, limit] of [['invites', 2] as const, ['reports', 1] as const]) {
    const admits = () => sluice.run(async () => (await quota.limit(name, 'ann')).allowed)
    for (let call = 1; call <= limit; call++) expect(await admits()).toBe(true)
    for (let call = 1; call <= 3; call++) expect(await admits()).toBe(false)
    await sluice.advance('40d')
    expect(await admits()).toBe(true)
  }
  expect(sluice.run(() => Date.now()) - Date.now()).toBeGreaterThan(79 * DAY_MS)
})

test('Without a Worker and an app, only Redis and the bridge run.', async () => {
  process.env.REDIS_URL = 'redis://127.0.0.1:1' // must not be used, because flush deletes everything
  const sluice = await startSluice()
  delete process.env.REDIS_URL
  const command = async (...body: string[]) => {
    const headers = { authorization: `Bearer ${sluice.env.UPSTASH_REDIS_REST_TOKEN}` }
    const url = sluice.env.UPSTASH_REDIS_REST_URL!
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    return ((await response.json()) as { result: unknown }).result
  }
  await command('set', 'key', 'one')
  expect(await command('get', 'key')).toBe('one')
  await sluice.flush()
  expect(await command('get', 'key')).toBe(null)
  await expect(sluice.fetch('/')).rejects.toThrow(
    'fetch: startSluice needs the option worker or app',
  )
  await sluice.stop()
  await sluice.stop()
  await expect(command('EU_1', 'ping')).rejects.toThrow()
})
