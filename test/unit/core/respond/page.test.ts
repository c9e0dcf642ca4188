/** The page that browsers get for a refused request. */
import { expect, test } from 'vitest'
import { pageOf } from '../../../../src/core/respond/page.ts'

async function page(wait?: number) {
  const problem = { title: 'Forbidden', detail: 'The request lacks jwt:<script>"&\'.' }
  const headers = { 'X-Other': 'a', ...(wait !== undefined && { 'Retry-After': String(wait) }) }
  const response = await pageOf(Response.json(problem, { status: 418, headers }))
  return { response, html: await response.text() }
}

test('The policy of the page allows its style and its script by a nonce, and nothing else.', async () => {
  const { html, response } = await page(5)
  const policy = response.headers.get('content-security-policy')
  const [, nonce] = /<script nonce=([\w-]+)>/.exec(html)!
  expect(policy).toBe(`default-src 'nonce-${nonce}';base-uri 'none'`)
  expect(html).toContain(`<style nonce=${nonce}>`)
  expect(html).not.toMatch(/https?:|src=|@import|url\(|style=|\son\w+=/)
  expect((await page(5)).response.headers.get('content-security-policy')).not.toBe(policy)
})

test.each([
  [1, '<b id=1>1</b> s.'],
  [120, '<b id=1>120</b> s.'],
  [121, '<b id=60>3</b> min.'],
  [7_200, '<b id=60>120</b> min.'],
  [86_400, '<b id=3600>24</b> h.'],
  [Math.ceil(2 ** 51 / 1000), '<b id=86400>26062498</b> d.'],
])('A wait of %d s is written as %j, also without JavaScript.', async (wait, text) => {
  const { html } = await page(wait)
  expect(html).toContain('<title>Too many requests</title>')
  expect(html).toContain(`You can <a href="">try again</a> in ${text}<script`)
})

test('Without a wait the page has the detail, escaped, and no script.', async () => {
  const { html } = await page()
  expect(html).toMatch(
    /<h1>Forbidden<\/h1><p>The request lacks jwt:&#60;script&#62;&#34;&#38;&#39;\.$/,
  )
  expect(html).not.toContain('<script')
})

test('The page has the status and the fields of the problem document.', async () => {
  const { status, headers } = (await page(5)).response
  expect([status, headers.get('x-other'), headers.get('retry-after')]).toEqual([418, 'a', '5'])
  expect(headers.get('content-type')).toBe('text/html;charset=utf-8')
})
