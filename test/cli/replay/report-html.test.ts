/** The page of a report in a real browser, opened as a file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toHtml } from '../../../cli/replay/report/html.ts'
import { createTally } from '../../../cli/replay/report/tally.ts'
import type { ReplayReport } from '../../../cli/replay/report/types.ts'
import { launchBrowser, openPage, rowsOf, textOf } from '../../support/browser.ts'
import {
  ADMITTED,
  contextOf,
  decidedAs,
  fullReport,
  HOSTILE,
  lineAt,
  PER_IP,
  REFUSED,
  SECTIONS,
} from '../../support/replay-report.ts'

let browser: Browser
let folder: string
let report: ReplayReport
let url: string

beforeAll(async () => {
  browser = await launchBrowser()
  folder = await mkdtemp(join(tmpdir(), 'sluice-report-'))
  const file = join(folder, 'out.html')
  report = fullReport()
  await writeFile(file, await toHtml(report))
  url = pathToFileURL(file).href
})
afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

const all = (page: Page, selector: string) =>
  page.evaluate(
    `[...document.querySelectorAll('${selector}')].map((one) => one.textContent)`,
  ) as Promise<string[]>

test('The page shows the report without an error, and loads nothing else.', async () => {
  const { page, mistakes } = await openPage(browser, url)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.reload()
  expect(await all(page, 'h2')).toEqual(SECTIONS)
  const [perIp] = await rowsOf(page, 'tbody')
  expect(perIp!.slice(0, 3)).toEqual(['per-ip', '300', '34 to 100'])
  expect(await textOf(page, 'pre')).toBe(report.suggestion!.text)
  expect(requests.filter((one) => !/^(file|data):/.test(one))).toEqual([])
  expect(requests.filter((one) => one.startsWith('file:'))).toEqual([url])
  expect(mistakes).toEqual([])
  await page.close()
})

test('Texts of the log and of file names are shown as text.', async () => {
  const { page, mistakes } = await openPage(browser, url)
  const shown = HOSTILE.replace('\u001b', '\\u{1b}').replace('\u202e', '\\u{202e}')
  expect(await page.title()).toBe(`Replay of ${shown} with sluice.config.ts`)
  expect(await all(page, 'article p')).toContain(`User agent: ${shown}`)
  expect(
    await page.evaluate(
      `document.querySelectorAll('img, script, iframe, a, form, [onerror], article b').length`,
    ),
  ).toBe(0)
  expect(mistakes).toEqual([])
  await page.close()
})

test('The policy of the page forbids scripts and the network, and other styles.', async () => {
  const { page, mistakes } = await openPage(browser, url)
  await page.evaluate(`document.body.append(
    Object.assign(document.createElement('img'), { src: 'http://127.0.0.1:9/x.png' }),
    Object.assign(document.createElement('script'), { textContent: 'document.title = 1' }),
    Object.assign(document.createElement('style'), { textContent: 'body { opacity: 0.5 }' }),
  )`)
  expect(await page.title()).not.toBe('1')
  expect(await page.evaluate('getComputedStyle(document.body).opacity')).toBe('1')
  await expect.poll(() => mistakes.length).toBeGreaterThanOrEqual(3)
  expect(mistakes.every((one) => one.includes('Content Security Policy'))).toBe(true)
  await page.close()
})

test('Each plot has a text, and a table with the same numbers.', async () => {
  const { page } = await openPage(browser, url)
  const plots = (await page.evaluate(
    `[...document.querySelectorAll('figure')].map((figure) => ({
      label: figure.querySelector('svg[role=img]').ariaLabel,
      caption: figure.querySelector('figcaption').textContent,
      rows: figure.querySelectorAll('details tbody tr').length,
      drawn: [...figure.querySelectorAll('path')].map((path) => path.getBBox().height),
    }))`,
  )) as { label: string; caption: string; rows: number; drawn: number[] }[]
  expect(plots.map(({ rows }) => rows)).toEqual([300, 300, 6, 4])
  expect(plots[0]!.label).toBe(
    'Requests every 1 s, all policies: 300, of which between 34 and 100 refused. Most in 1 s: 1 request, 1 refused.',
  )
  for (const { label, caption, drawn } of plots) {
    expect(caption).toBe(label)
    expect(Math.max(...drawn)).toBeGreaterThan(50)
  }
  await page.click('details summary')
  expect((await rowsOf(page, 'details[open] tbody'))[0]).toEqual(['2026-11-23 10:00:00', '1', '1'])
  const unnamed = await page.evaluate(
    `[...document.querySelectorAll('table')].filter((one) => !one.caption.textContent
      || [...one.querySelectorAll('th')].some((th) => !th.scope)).length`,
  )
  expect(unnamed).toBe(0)
  await page.close()
})

test('Few refused requests beside many admitted ones have a picture of their own.', async () => {
  const tally = createTally({ policies: [PER_IP] })
  const lines = Array.from({ length: 500 }, (_, n) => lineAt(Math.floor(n / 50)))
  tally.add(lines.map((line, n) => decidedAs(line, n % 50 === 0 ? REFUSED : ADMITTED)))
  const page = await toHtml(tally.result(contextOf()))
  const [figure] = page.match(/<figure>.*?<\/figure>/s)!
  const pictures = figure.split('<svg').slice(1)
  expect(pictures.length).toBe(2)
  /** The highest place of the refused requests, from the top, of 100. */
  const topOf = (picture: string) =>
    Math.min(
      ...[.../class="refused" d="([^"]*)"/.exec(picture)![1]!.matchAll(/V([\d.]+)/g)].map(([, y]) =>
        Number(y),
      ),
    )
  expect(pictures.map(topOf)).toEqual([98, 0])
  expect(pictures[1]).toContain('Refused requests alone.')
  expect(pictures[1]).not.toContain('class="requests"')
})

test('Refused requests that are seen beside the others have no second picture.', async () => {
  const figures = (await toHtml(report)).match(/<figure>.*?<\/figure>/gs)!
  expect(figures.map((figure) => figure.split('<svg').length - 1)).toEqual([1, 1, 1, 1])
})

test.each([
  ['light', 'rgb(255, 255, 255)'],
  ['dark', 'rgb(20, 23, 27)'],
])('At a width of 360 px nothing is cut off, in %s mode.', async (scheme, background) => {
  const { page, mistakes } = await openPage(browser, url, { width: 360, height: 740 })
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
  await page.click('details summary')
  const seen = await page.evaluate(`({
    overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    background: getComputedStyle(document.body).backgroundColor,
    fills: new Set([...document.querySelectorAll('figure:first-of-type path')]
      .map((path) => getComputedStyle(path).fill)).size,
  })`)
  expect(seen).toEqual({ overflow: 0, background, fills: 3 })
  expect(mistakes).toEqual([])
  await page.close()
})
