/** What an operator wants to know or to do, in a real browser, in front of a Worker with a real Redis. Each takes at most three clicks. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type RunningDashboard, startDashboard } from '../../cli/dashboard/server.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { TestClock } from '../../src/testing/clock.ts'
import { apiTokens, OPERATE } from '../support/api-stack.ts'
import {
  launchBrowser,
  openPage,
  pairsOf,
  rowsOf,
  textOf,
  violationsOf,
  waitUntil,
} from '../support/browser.ts'
import { type Faults, startFaults } from '../support/fault-proxy/index.ts'
import { type Isolate, useGateway } from '../support/gateway.ts'

const config: ConfigOptions = {
  policies: [
    {
      name: 'per-ip',
      algorithm: 'fixed-window',
      limit: 20,
      window: '1h',
      overrides: true,
      match: { path: '/shop' },
    },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 3,
      window: '1h',
      match: { path: '/login' },
      onStoreError: 'deny',
      penalty: { after: 3, within: '10m', ban: '1h', list: true },
    },
  ],
}
const clock = new TestClock()
const gateway = useGateway({ config, clock })

let faults: Faults
let isolate: Isolate
let server: Server
let dashboard: RunningDashboard
let browser: Browser
let page: Page
let mistakes: string[]
let clicks: number

beforeAll(async () => {
  faults = await startFaults({ target: gateway.bridge.url })
  server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method = 'GET', url = '/', headers } = request
    const { authorization = '' } = headers
    const answer = await isolate.fetch(url, {
      method,
      headers: { authorization },
      ...(body && { body }),
    })
    response
      .writeHead(answer.status, { 'Content-Type': answer.headers.get('content-type') ?? '' })
      .end(await answer.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  dashboard = await startDashboard({ url, token: () => OPERATE, port: 0 })
  browser = await launchBrowser()
})
beforeEach(() => {
  const env = { ...apiTokens, UPSTASH_REDIS_REST_URL: faults.url }
  isolate = gateway.start(config, { env, observe: { subjects: 'plain' } })
  clicks = 0
})
afterEach(async () => {
  expect(mistakes).toEqual([])
  expect(clicks).toBeLessThanOrEqual(3)
  await page.close()
})
afterAll(async () => {
  await browser?.close()
  await dashboard?.close()
  server?.closeAllConnections()
  server?.close()
  await faults?.close()
})

/** Sends requests of one client. @returns the last status */
async function send(count: number, ip: string, path = '/shop') {
  let status = 0
  for (let n = 0; n < count; n += 1) status = (await isolate.fetch(path, { ip })).status
  return status
}

async function open() {
  ;({ page, mistakes } = await openPage(browser, dashboard.address))
  await waitUntil(page, `!document.getElementById('counts').hidden`)
}

/** Clicks a button by its label, or an element by its selector, once it is there. */
async function click(what: string) {
  const selector = /^[#.]/.test(what) ? what : `[aria-label="${what}"]`
  await waitUntil(page, `document.querySelector('${selector}')?.checkVisibility()`)
  await page.click(selector)
  clicks += 1
}

const FIRST_LIMIT = '#client-limits section:first-child dl'
const done = () => waitUntil(page, `document.getElementById('done').checkVisibility()`)

test('Who is being refused, and why?', async () => {
  await send(30, '203.0.113.7')
  await send(5, '203.0.113.8')
  await open()
  expect(await textOf(page, '#status-title')).toBe('Healthy: the store decides')
  expect((await rowsOf(page, '#now')).map((row) => row.slice(0, 3))).toEqual([
    ['per-ip', '10', '28.6%'],
  ])
  expect((await rowsOf(page, '#offenders')).map((row) => row.slice(0, 3))).toEqual([
    ['ip=203.0.113.7', 'per-ip', '10'],
  ])
  await click('Details ip=203.0.113.7')
  await waitUntil(page, `document.querySelector('${FIRST_LIMIT}')`)
  expect(await textOf(page, '#client-limits h3')).toBe('per-ip: 20 per 1 h')
  expect(await pairsOf(page, FIRST_LIMIT)).toMatchObject({
    used: '20 of 20 (100%)',
    'next request': expect.stringMatching(/^refused, wait [\d.]+ (h|min)$/),
  })
  expect(await violationsOf(page)).toEqual([])
})

test('Redis is down: what happens to requests, since when, and what is there to do?', async () => {
  await send(1, '203.0.113.20')
  await open()
  await faults.set('refuse')
  await send(10, '203.0.113.20')
  await waitUntil(page, `document.getElementById('status').dataset.level === 'bad'`)
  expect(await textOf(page, '#status-title')).toMatch(
    /^Refusing since \w+ \d+, \d\d:\d\d:\d\d, because the connection to the store fails$/,
  )
  expect(await textOf(page, '#status-text')).toMatch(
    /^login: all requests are refused with 503\. per-ip: each isolate counts by itself, .* 10 of 11 requests of the last minute/,
  )
  await click('#status-help summary')
  expect(await textOf(page, '#status-steps')).toContain('UPSTASH_REDIS_REST_URL')

  await faults.set(null)
  clock.advance('70s')
  while ((await isolate.fetch('/shop', { ip: '203.0.113.20' })).headers.get('ratelimit') === null);
  await waitUntil(
    page,
    `document.getElementById('status-title').textContent === 'Healthy: the store decides'`,
  )
})

test('Unban a customer.', async () => {
  const ip = '203.0.113.30'
  expect(await send(6, ip, '/login')).toBe(429)
  await open()
  await click(`Details ip=${ip}`)
  await click('Unban login')
  await click('#confirm-yes')
  await done()
  expect(await textOf(page, '#done-text')).toBe('The ban has ended. Used units stay.')
  await waitUntil(page, `!document.querySelector('#bans tr')`)
  expect(await pairsOf(page, FIRST_LIMIT)).toMatchObject({
    ban: 'not banned',
    used: '3 of 3 (100%)',
  })
  const offered = `[...document.querySelectorAll('#client-limits button')].map((one) => one.textContent)`
  expect(await page.evaluate(offered)).toContain('Reset')
})

test('Raise the limit of a customer for a day.', async () => {
  const ip = '203.0.113.40'
  expect(await send(21, ip)).toBe(429)
  await open()
  await click('Details ip=203.0.113.40')
  await click('Raise limit per-ip')
  await click('#confirm-yes')
  await done()
  expect(await pairsOf(page, FIRST_LIMIT)).toMatchObject({
    used: '20 of 40 (50%)',
    'limit of an operator': expect.stringMatching(/^for (1 d|2[\d.]+ h)$/),
  })
  await waitUntil(page, `document.querySelector('#overrides tr')`)
  clock.advance('11s') // the isolate repeats a refusal for ten seconds
  expect(await send(20, ip)).toBe(200)
  expect(await send(1, ip)).toBe(429)
})

test('What will this month cost?', async () => {
  await send(2, '203.0.113.50', '/login')
  await open()
  expect((await pairsOf(page, '#figures'))['a month costs']).toBe('–')
  clock.advance('2m')
  for (let n = 0; n < 120; n += 1) await send(1, `198.51.100.${n}`)
  await waitUntil(page, `document.querySelector('#figures dd').textContent === '120'`)
  const { 'a month costs': price } = await pairsOf(page, '#figures')
  // 120 requests a minute, each of three billed commands: 30 days at $0.20 per 100,000.
  expect(price).toBe('$31.10')
  expect(await textOf(page, '#bill')).toMatch(
    /^\$31\.10 a month = 2 requests a second × 3 billed commands × 30 days × \$0\.20 per 100,000/,
  )
})
