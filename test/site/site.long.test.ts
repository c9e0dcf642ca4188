/** The built site in a real browser. */
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { buildSite, builtFiles } from '../../tools/site/build.ts'
import { brokenLinks, MAX_FIRST_PAGE } from '../../tools/site/check.ts'
import { addressOf, pagePaths, type SiteFiles } from '../../tools/site/pages.ts'
import { type ServedSite, serveSite } from '../../tools/site/serve.ts'
import { launchBrowser, openPage, textOf, violationsOf, waitUntil } from '../support/browser.ts'

const SITE = 'https://docs.example.com'
let files: SiteFiles
let site: ServedSite
let browser: Browser

beforeAll(async () => {
  await buildSite(SITE)
  files = builtFiles()
  site = await serveSite(files, 0)
  browser = await launchBrowser()
}, 300_000)
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

/** The cumulative layout shift since the page began to load. */
const shiftOf = (page: Page) =>
  page.evaluate(
    `new Promise((resolve) => {
      let sum = 0
      const add = (list) => { for (const { value } of list.getEntries()) sum += value }
      new PerformanceObserver(add).observe({ type: 'layout-shift', buffered: true })
      setTimeout(() => resolve(sum), 300)
    })`,
  )

test('Every link of every page leads to a page and an anchor that exist, and nothing is loaded from elsewhere.', () => {
  expect(files.size).toBeGreaterThan(100)
  expect(brokenLinks(files)).toEqual([])
})

test('The first page loads at most 100 KiB, compressed, and nothing from elsewhere.', async () => {
  const page = await browser.newPage()
  let bytes = 0
  const elsewhere: string[] = []
  const cdp = await page.createCDPSession()
  await cdp.send('Network.enable')
  cdp.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(site.url) && !url.startsWith('data:')) elsewhere.push(url)
    if (/\.(png|svg)$/.test(url)) bytes -= files.get(new URL(url).pathname.slice(1))?.length ?? 0
  })
  await page.goto(site.url, { waitUntil: 'networkidle0' })
  expect(bytes).toBeGreaterThan(20_000)
  expect(bytes).toBeLessThanOrEqual(MAX_FIRST_PAGE)
  expect(elsewhere).toEqual([])
  await page.close()
})

/** The layout shift that browsers call good is 0.1. The theme opens a group of the sidebar, and sets the outline of a narrow screen, after it has loaded. */
test.each([
  ['/', 0],
  ['/docs/', 0.05],
  ['/docs/tutorial', 0.05],
  ['/docs/reference/cli', 0.05],
])('While %s loads, at each width it moves by at most %d.', async (path, most) => {
  for (const width of [390, 768, 1440]) {
    const { page } = await openPage(browser, 'about:blank', { width })
    await page.goto(site.url + path, { waitUntil: 'networkidle0' })
    expect(await shiftOf(page)).toBeLessThanOrEqual(most)
    await page.close()
  }
})

test('The search finds a page without a server.', async () => {
  const { page, mistakes } = await openPage(browser, `${site.url}/`, { width: 1280 })
  await page.click('.VPNavBarSearch button')
  await waitUntil(page, `document.querySelector('.VPLocalSearchBox input')`)
  await page.type('.VPLocalSearchBox input', 'lighttpd')
  await waitUntil(page, `document.querySelector('.VPLocalSearchBox .result')`)
  expect(await textOf(page, '.VPLocalSearchBox .results')).toContain('Spellings of a path')
  expect(mistakes).toEqual([])
  await page.close()
})

test.each([
  ['pricing', 'What it costs'],
  ['whitelist', 'Exempt clients'],
  ['timeout', 'deadline'],
  ['login', 'Throttle logins'],
])('A search for %s finds %s.', async (word, wanted) => {
  const { page } = await openPage(browser, `${site.url}/`, { width: 1280 })
  await page.click('.VPNavBarSearch button')
  await waitUntil(page, `document.querySelector('.VPLocalSearchBox input')`)
  await page.type('.VPLocalSearchBox input', word)
  await waitUntil(page, `document.querySelector('.VPLocalSearchBox .result')`)
  expect(await textOf(page, '.VPLocalSearchBox .results')).toContain(wanted)
  await page.close()
})

test('The copy button copies commands, without prompts and output.', async () => {
  const { page } = await openPage(browser, `${site.url}/docs/tutorial`, { width: 1280 })
  const copied = await page.evaluate(`(async () => {
    let text
    navigator.clipboard.writeText = async (value) => { text = value }
    const block = [...document.querySelectorAll('div[class*="language-console"]')]
      .find((one) => one.textContent.includes('npx sluice init'))
    block.querySelector('button.copy').click()
    await new Promise((resolve) => setTimeout(resolve, 100))
    return text
  })()`)
  expect(String(copied).trim().split('\n')).toEqual([
    'mkdir limiter && cd limiter && npm init -y',
    'npm install sluice',
    'npx sluice init',
  ])
  await page.close()
})

test('The sidebar shows the link of the open page, and few others.', async () => {
  const { page } = await openPage(browser, `${site.url}/docs/reference/linter`, { width: 1280 })
  const shown = `[...document.querySelectorAll('.VPSidebar a')].filter((link) => link.offsetParent)`
  await waitUntil(page, `${shown}.some((link) => link.closest('.is-active'))`)
  expect(await page.evaluate(`${shown}.length`)).toBeLessThanOrEqual(30)
  const isInView = `(() => {
    const { top, bottom } = document.querySelector('.VPSidebar .is-link.is-active').getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
  })()`
  await waitUntil(page, isInView)
  await page.close()
})

test('A page that does not exist offers the search and the index.', async () => {
  const { page } = await openPage(browser, `${site.url}/docs/nothing`, { width: 1280 })
  await waitUntil(page, `document.querySelector('.not-found')`)
  expect(await textOf(page, '.not-found')).toContain('All guides and pages')
  expect(await violationsOf(page)).toEqual([])
  await page.click('.not-found button')
  await waitUntil(page, `document.querySelector('.VPLocalSearchBox input')`)
  await page.close()
})

test('The site has an index and Markdown of each page for programs, and a sitemap with the address of the site.', () => {
  const text = (name: string) => new TextDecoder().decode(files.get(name) as Uint8Array)
  expect(text('llms.txt')).toContain('/docs/guides/throttle-logins.md')
  expect(text('docs/guides/throttle-logins.md')).toContain('# Throttle logins')
  expect(text('robots.txt')).toContain(`Sitemap: ${SITE}/sitemap.xml`)
  expect(text('sitemap.xml')).toContain(`<loc>${SITE}/docs/guides/throttle-logins</loc>`)
  const page = text('docs/guides/throttle-logins.html')
  expect(page).toContain('<meta name="description" content="Limit how often one client')
  expect(page).toContain(`<meta property="og:image" content="${SITE}/card.png">`)
})

test('A page shows when it was last changed, and the bar shows the version.', async () => {
  const { page } = await openPage(browser, `${site.url}/docs/tutorial`, { width: 1280 })
  await waitUntil(page, `/20\\d\\d$/.test(document.querySelector('.VPLastUpdated')?.textContent)`)
  expect(await textOf(page, '.VPNavBarMenu')).toContain(`v${manifest.version}`)
  await page.close()
})

test('The page of the algorithms embeds a playground that has played.', async () => {
  const { page, mistakes } = await openPage(
    browser,
    `${site.url}/docs/explanation/algorithms#fixed-window`,
    { width: 1280 },
  )
  await waitUntil(
    page,
    `[...document.querySelectorAll('iframe.playground')].some((one) => one.contentDocument?.body?.dataset.played === 'yes')`,
  )
  expect(mistakes).toEqual([])
  await page.close()
})

test.each(pagePaths().map((path) => addressOf(path)))(
  'At three widths and in both schemes nothing of %s overflows, and axe finds no violation.',
  async (path) => {
    const { page, mistakes } = await openPage(browser, 'about:blank')
    for (const [width, value] of [
      [390, 'light'],
      [768, 'light'],
      [1440, 'light'],
      [1440, 'dark'],
    ] as const) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      await page.setViewport({ width, height: 900 })
      await page.goto(site.url + path, { waitUntil: 'load' })
      await waitUntil(page, `document.querySelector('#app')?.__vue_app__`)
      const facts = `[document.documentElement.scrollWidth, document.documentElement.classList.contains('dark')]`
      expect(await page.evaluate(facts)).toEqual([width, value === 'dark'])
      expect(await violationsOf(page)).toEqual([])
    }
    expect(mistakes).toEqual([])
    await page.close()
  },
  120_000,
)
