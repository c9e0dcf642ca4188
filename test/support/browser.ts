/** A real browser: Chromium without a window. */
import chromium from '@sparticuz/chromium'
import axe from 'axe-core'
import { type Browser, launch, type Page } from 'puppeteer-core'
import { expect } from 'vitest'

export const launchBrowser = async (): Promise<Browser> =>
  launch({
    // Without chromium.args, which turn off the rules for origins.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--lang=en-US',
      '--host-resolver-rules=MAP rebound.test 127.0.0.1',
    ],
    executablePath: process.env.CHROME_BIN || (await chromium.executablePath()),
    headless: 'shell',
    // navigator.language is then en-US@posix, which Intl does not accept.
    env: { ...process.env, LC_ALL: 'C' },
  })

/** Opens a page, and collects what goes wrong in it: exceptions, errors in the console, violations of the policy. */
export async function openPage(browser: Browser, url: string, { width = 1100, height = 900 } = {}) {
  const page = await browser.newPage()
  await page.setViewport({ width, height })
  const mistakes: string[] = []
  page.on('pageerror', (error) => mistakes.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') mistakes.push(message.text())
  })
  await page.goto(url)
  return { page, mistakes }
}

/** The texts of a table body or a list of pairs, one list for each row. */
export const rowsOf = (page: Page, selector: string): Promise<string[][]> =>
  page.evaluate(
    `[...document.querySelectorAll('${selector} > *')].map((row) => [...row.children].map((cell) => cell.textContent))`,
  ) as Promise<string[][]>

/** The pairs of a list as an object. */
export const pairsOf = async (page: Page, selector: string): Promise<Record<string, string>> =>
  Object.fromEntries((await rowsOf(page, selector)) as [string, string][])

/** The text of an element. */
export const textOf = (page: Page, selector: string): Promise<string> =>
  page.evaluate(`document.querySelector('${selector}')?.textContent.trim()`) as Promise<string>

/**
 * Waits until an expression is true in the page. The browser's own ways to wait compile text in the page, which the policy of the
 * dashboard forbids.
 */
export const waitUntil = (page: Page, expression: string) =>
  expect.poll(() => page.evaluate(`Boolean(${expression})`), { timeout: 15_000 }).toBe(true)

/** Waits for an element. */
export const waitForElement = (page: Page, selector: string) =>
  waitUntil(page, `document.querySelector('${selector}')`)

/** The violations of rules for accessibility that axe finds, one line for each. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  return page.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, impact, nodes }) => id + ' (' + impact + '): ' + nodes.map(({ target }) => target).join(', ')))`,
  ) as Promise<string[]>
}
