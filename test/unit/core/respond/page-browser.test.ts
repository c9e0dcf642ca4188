/** The page of a refusal in a browser, under its own policy. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { pageOf } from '../../../../src/core/respond/page.ts'
import { launchBrowser, openPage } from '../../../support/browser.ts'

test('In a browser the page counts down, follows the dark mode, and breaks no rule of its policy.', async () => {
  const server = createServer(async ({ url }, response) => {
    if (url !== '/') return void response.writeHead(204).end()
    const answer = await pageOf(Response.json({}, { headers: { 'Retry-After': '90' } }))
    response.setHeaders(answer.headers)
    response.end(await answer.text())
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { page, mistakes } = await openPage(browser, url)
  const background = () =>
    page.evaluate(
      "getComputedStyle(document.documentElement).colorScheme + matchMedia('(prefers-color-scheme: dark)').matches",
    )
  expect(await page.evaluate("document.querySelector('p').textContent")).toMatch(
    /^You can try again in (90|8\d) s\./,
  )
  await page.waitForFunction("Number(document.querySelector('b').textContent) < 89")
  expect(await page.evaluate('getComputedStyle(document.documentElement).maxWidth')).not.toBe(
    'none',
  )
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
  expect(await background()).toBe('light darktrue')
  expect(mistakes).toEqual([])
}, 60_000)
