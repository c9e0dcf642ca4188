/** The dashboard of `sluice dev` in a real browser: what it shows equals the requests that were sent. */
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser, openPage, pairsOf, rowsOf, textOf, waitUntil } from '../support/browser.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { processes, waitUntilEnded } from '../support/npm-start.ts'

const CONFIG = `import { defineConfig } from 'sluice'
import { observe } from 'sluice/features'

export default defineConfig({
  origin: 'zone',
  deadline: '10s',
  policies: [
    { name: 'per-ip', algorithm: 'fixed-window', limit: 20, window: '1h', penalty: 'manual' },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 3,
      window: '1h',
      match: { path: '/login', method: 'POST' },
      onStoreError: 'allow',
    },
  ],
  deny: [{ name: 'scanners', path: '/wp-admin/*' }],
  use: [observe()],
})
`

const WORKER = `import { createGateway } from 'sluice'
import config from '../sluice.config'
export default createGateway(config)
`
const TOML = 'name = "shop"\nmain = "src/worker.ts"\ncompatibility_date = "2026-10-01"\n'

let project: CliProject
let run: Awaited<ReturnType<CliProject['dev']>>
let worker: string
let address: string
let browser: Browser
let page: Page
let mistakes: string[]
beforeAll(async () => {
  project = await cliProject()
  await project.write('package.json', '{ "type": "module" }')
  await project.write('sluice.config.ts', CONFIG)
  await project.write('wrangler.toml', TOML)
  await project.write('src/worker.ts', WORKER)
  run = await project.dev()
  worker = run.url
  address = /Dashboard: .*\s+(http:\S+)/.exec(run.output())![1]!
  browser = await launchBrowser()
  const opened = await openPage(browser, address)
  page = opened.page
  mistakes = opened.mistakes
}, 120_000)
afterAll(async () => {
  await browser?.close()
  project?.kill()
  await project?.remove()
})

/** Sends requests of one client, and counts the statuses. */
async function send(count: number, ip: string, path = '/', method = 'GET') {
  const statuses: Record<number, number> = {}
  for (let n = 0; n < count; n++) {
    const headers = { 'CF-Connecting-IP': ip }
    const { status } = await fetch(worker + path, { method, headers })
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

/** Types into a field, which an earlier attempt may have filled. */
async function fill(selector: string, text: string) {
  await page.evaluate(`document.querySelector('${selector}').value = ''`)
  await page.type(selector, text)
}

test('The numbers on the page equal the requests that were sent.', async () => {
  expect(await send(30, '203.0.113.7')).toEqual({ 200: 20, 429: 10 })
  expect(await send(5, '203.0.113.8')).toEqual({ 200: 5 })
  expect(await send(7, '203.0.113.9', '/login', 'POST')).toEqual({ 200: 3, 429: 4 })
  expect(await send(2, '203.0.113.10', '/wp-admin/setup')).toEqual({ 403: 2 })
  await waitUntil(page, `document.querySelector('#figures dd')?.textContent === '44'`)
  expect(await textOf(page, '#status-title')).toBe('Healthy: the store decides')
  const rows = await rowsOf(page, '#requests')
  const total = rows.at(-1)!
  expect(rows.map(([policy]) => policy)).toEqual(['per-ip', 'login', 'scanners', 'all policies'])
  expect(rows.map((cells) => cells.slice(1, 6))).toEqual([
    // requests, allowed, limited, banned, denied
    ['35', '25', '10', '0', '0'],
    ['7', '3', '4', '0', '0'],
    ['2', '0', '0', '0', '2'],
    ['44', '28', '14', '0', '2'],
  ])
  expect(total.at(-1)).toBe('36.4%')
  expect(await pairsOf(page, '#figures')).toMatchObject({
    'refused, last minute': '16 (36.4%)',
    'a month costs': '–',
  })
  expect(await textOf(page, '#source')).toMatch(/^Counts of one isolate/)
  const label = await page.evaluate(`document.getElementById('chart').ariaLabel`)
  expect(label).toMatch(/^Requests in the last 10 min: 44, of which 16 refused\./)
  const offenders = await rowsOf(page, '#offenders')
  // On a developer's machine clients have their names.
  expect(offenders.map((cells) => cells.slice(0, 3))).toEqual([
    ['ip=203.0.113.7', 'per-ip', '10'],
    ['ip=203.0.113.9', 'login', '4'],
  ])
  expect(await pairsOf(page, '#store')).toMatchObject({
    circuit: 'closed: calls pass',
    'requests since the start': '44',
    'refused since the start': '16 (36.4%)',
    'decided without the store': '0',
  })
  expect(await textOf(page, '#problem')).toBe('')
})

test('A client that is banned by its key is refused, and served again after its ban ends.', async () => {
  const other = '203.0.113.8'
  const answered = (text: string) =>
    waitUntil(page, `document.getElementById('done-text').textContent.includes('${text}')`)
  await page.select('#find select', 'per-ip')
  await fill('#find-key input', other)
  await page.click('#find button')
  await waitUntil(page, `document.querySelector('[aria-label="Ban per-ip"]')`)
  await page.click('[aria-label="Ban per-ip"]')
  await page.click('#confirm-yes')
  await answered('banned')
  expect(await send(1, other)).toEqual({ 429: 1 })
  await page.click('#undo')
  await answered('Undone')
  expect(await send(1, other)).toEqual({ 200: 1 })
  expect(mistakes).toEqual([])
})

test('The signal SIGKILL to sluice dev itself leaves nothing running.', async () => {
  const family = processes(run.pid)
  process.kill(run.pid, 'SIGKILL')
  await run.ended
  await waitUntilEnded(family)
})
