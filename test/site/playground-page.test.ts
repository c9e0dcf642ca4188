/** The page of the playground in a real browser. */
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { numberText } from '../../cli/dashboard/page/text.ts'
import { fragmentOf, type PageState } from '../../site/playground/state.ts'
import { bundlePlayground } from '../../tools/site/playground.ts'
import { type ServedSite, serveSite } from '../../tools/site/serve.ts'
import {
  launchBrowser,
  openPage,
  pairsOf,
  rowsOf,
  textOf,
  violationsOf,
  waitUntil,
} from '../support/browser.ts'
import { isLong } from '../support/long.ts'
import { onModel, scenarios } from '../support/playground.ts'

let browser: Browser
let site: ServedSite
const opened: Page[] = []

beforeAll(async () => {
  const files = await bundlePlayground('')
  site = await serveSite(new Map([...files].map(([name, body]) => [`playground/${name}`, body])), 0)
  browser = await launchBrowser()
})
afterEach(async () => {
  for (const page of opened.splice(0)) await page.close()
})
afterAll(async () => {
  await browser?.close()
  await site?.close()
})

const isPlayed = `document.body.dataset.played === 'yes'`

async function open(fragment: string, size = {}) {
  const { page, mistakes } = await openPage(browser, `${site.url}/playground/#${fragment}`, size)
  opened.push(page)
  await waitUntil(page, isPlayed)
  return { page, mistakes }
}

const openState = async (state: PageState) => open(await fragmentOf(state))
const exampleOf = (name: string) => scenarios[name]!

/** What the page says about each request: moves the slider to each of them. */
const readRequests = (page: Page) =>
  page.evaluate(`(() => {
    const slider = document.getElementById('at')
    return Array.from({ length: Number(slider.max) + 1 }, (_, n) => {
      slider.value = String(n)
      slider.dispatchEvent(new Event('input'))
      const response = document.getElementById('fields').textContent
      const body = /\\n\\n(.*)$/s.exec(response)
      return {
        title: document.getElementById('request-title').textContent,
        status: Number(/^HTTP\\/1\\.1 (\\d+)/.exec(response)?.[1]),
        waitMs: body ? JSON.parse(body[1]).retryAfterMs : 0,
        left: [...document.querySelectorAll('#request div')].slice(1).map((one) => one.textContent),
      }
    })
  })()`) as Promise<{ title: string; status: number; waitMs: number; left: string[] }[]>

/** In `npm run test:long` all of them; engine.test.ts compares all of them without a browser. */
const compared = Object.entries(scenarios).filter(
  ([name], n) => name !== 'limit-call' && (isLong || n % 4 === 0),
)

test.each(compared)('The numbers on the page are those of the oracle: %s.', async (_, state) => {
  const expected = onModel(state)
  const { page, mistakes } = await openState(state)
  const admitted = expected.filter(({ allowed }) => allowed).length
  expect(await pairsOf(page, '#figures')).toMatchObject({
    requests: String(expected.length),
    admitted: String(admitted),
    refused: String(expected.length - admitted),
  })
  const shown = await readRequests(page)
  expect(shown.map(({ status, waitMs }) => [status, waitMs])).toEqual(
    expected.map(({ allowed, states }) => [
      allowed ? 200 : 429,
      allowed ? 0 : Math.max(...states.map(({ retryAfterMs }) => retryAfterMs!)),
    ]),
  )
  const first = expected.findIndex(({ allowed }) => allowed)
  const { policy, remaining } = expected[first]!.states[0]!
  expect(shown[first]!.left[0]).toMatch(new RegExp(`^${policy}${numberText(remaining!)} of `))
  expect(mistakes).toEqual([])
})

describe('the editor', () => {
  test('A change of the text is marked and played, and changes the address.', async () => {
    const { page, mistakes } = await open('fixed-window')
    await replaceText(page, `defineConfig({ policies: [{ name: 'a', limit: 30, window: '1m' }] })`)
    await waitUntil(
      page,
      `document.getElementById('lesson').textContent.includes('with a limit of 30')`,
    )
    expect(await page.evaluate('location.hash')).toMatch(/^#s=/)
    expect(await textOf(page, '#marks-title')).toBe('The linter has no findings.')
    expect(mistakes).toEqual([])
  })

  test('An error is marked at its place, and a click selects the place.', async () => {
    const { page } = await open('fixed-window')
    await replaceText(page, `defineConfig({ policies: [{ name: 'a', limt: 30, window: '1m' }] })`)
    await waitUntil(page, `document.querySelector('.cm-lintRange-error')`)
    await waitUntil(
      page,
      `/policies\\[0\\]\\.lim/.test(document.getElementById('problem').textContent)`,
    )
    await page.evaluate(
      `[...document.querySelectorAll('#marks button')].find((one) => /limt/.test(one.textContent)).click()`,
    )
    expect(await page.evaluate('String(getSelection())')).toBe('limt: 30')
  })

  test('The schema completes a field, with its documentation.', async () => {
    const { page } = await open('fixed-window')
    await replaceText(page, 'defineConfig({ policies: [{ onSt')
    await page.keyboard.type('o')
    await waitUntil(page, `document.querySelector('.cm-tooltip-autocomplete')`)
    await waitUntil(page, `document.querySelector('.cm-completionInfo')`)
    expect(await textOf(page, '.cm-tooltip-autocomplete li')).toBe('onStoreError')
    expect(await textOf(page, '.cm-completionInfo')).toContain('Default:')
  })

  test('Code of an address does not run.', async () => {
    const text = `globalThis.hacked = 1; document.title = 'x'
defineConfig({ policies: [{ name: 'a', limit: alert(1), window: '1m' }] })`
    const { page, mistakes } = await openState({ ...exampleOf('fixed-window'), text })
    expect(await textOf(page, '#problem')).toContain('The playground has no alert()')
    expect(await page.evaluate('[typeof globalThis.hacked, document.title]')).toEqual([
      'undefined',
      'Sluice playground',
    ])
    expect(mistakes).toEqual([])
  })
})

test.each([
  ['s=AAAA', 'The address is damaged'],
  ['sliding-windows', 'There is no example "sliding-windows"'],
])('The address #%s is said to be wrong, and the first example is open.', async (hash, said) => {
  const { page } = await open(hash)
  expect(await textOf(page, '#failure')).toContain(said)
  expect(await textOf(page, '#lesson')).toContain('121 of 140 requests were refused')
})

describe('what cannot run', () => {
  const chart = `document.querySelector('#timeline path.admitted').getAttribute('d')`

  test.each([
    ['requests', '5000', 'Requests: write a whole number from 1 to 2,000.'],
    ['requests', '', 'Requests: write a whole number from 1 to 2,000.'],
    ['url', '/login', 'URL: write a whole address, such as https://www.example.com/.'],
    ['method', 'GET /', 'Method: write letters, such as GET.'],
  ])(
    'The field %s with "%s" says what to write, and the chart stays.',
    async (name, value, said) => {
      const { page } = await open('fixed-window')
      const before = await page.evaluate(chart)
      const write = (text: string) =>
        page.evaluate(`(() => {
        const field = document.querySelector('[name=${name}]')
        field.value = ${JSON.stringify(text)}
        field.dispatchEvent(new Event('input', { bubbles: true }))
      })()`)
      const valid = await page.evaluate(`document.querySelector('[name=${name}]').value`)
      await write(value)
      await waitUntil(page, `document.getElementById('invalid').textContent`)
      expect(await textOf(page, '#invalid')).toBe(`${said} The chart shows the last valid run.`)
      expect(await page.evaluate(`document.querySelector('[name=${name}]').ariaInvalid`)).toBe(
        'true',
      )
      expect(await page.evaluate(chart)).toBe(before)
      expect(await violationsOf(page)).toEqual([])
      await write(valid as string)
      await waitUntil(page, `!document.getElementById('invalid').textContent`)
    },
  )

  test('A configuration with an error says so, and the chart stays.', async () => {
    const { page } = await open('fixed-window')
    const before = await page.evaluate(chart)
    await replaceText(page, `defineConfig({ policies: [{ name: 'a', limit: 0.5, window: '1m' }] })`)
    await waitUntil(page, `document.getElementById('problem').textContent`)
    expect(await textOf(page, '#problem')).toMatch(
      /limit: .* The chart shows the last valid run\.$/,
    )
    expect(await page.evaluate(chart)).toBe(before)
  })
})

test('The page says that it runs until the run has ended.', async () => {
  const { page } = await open('fixed-window')
  const said = await page.evaluate(`(async () => {
    const said = []
    const busy = document.getElementById('busy')
    new MutationObserver(() => said.push(busy.textContent)).observe(busy, { childList: true })
    document.querySelector('[name=requests]').dispatchEvent(new Event('input', { bubbles: true }))
    while (said.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    return said
  })()`)
  expect(said).toEqual(['Running …', ''])
})

test('The slider writes the limit of the policy that is shown into the text, and the lesson follows.', async () => {
  const { page, mistakes } = await open('several-limits')
  expect(await textOf(page, '#dial-title')).toBe('limit of login: 5')
  await page.focus('#dial')
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  expect(await textOf(page, '#dial-title')).toBe('limit of login: 7')
  expect(await textOf(page, '.cm-content')).toContain('limit: 7,')
  await waitUntil(page, `document.getElementById('lesson').textContent.includes('0 of 7 left')`)
  await page.select('#policy', 'per-ip')
  expect(await textOf(page, '#dial-title')).toBe('limit of per-ip: 60')
  expect(mistakes).toEqual([])
})

test('Several limits: the quota on the chart is that of the policy that refuses.', async () => {
  const { page } = await open('several-limits')
  const label = `document.querySelector('#timeline svg').getAttribute('aria-label')`
  expect(await page.evaluate(label)).toContain('of 203.0.113.1 by the policy login, of 5 units')
})

test('Concurrency: a refusal names no wait, because a slot is free when a response ends.', async () => {
  const { page } = await open('concurrency')
  expect(Object.values(await pairsOf(page, '#request'))).toContain('refuses: 2 are in flight')
})

test('A call by name and key shows its result, and no fields of HTTP.', async () => {
  const { page, mistakes } = await open('limit-call')
  expect(await textOf(page, '#fields')).toMatch(/^await quota\.limit\('invites', 'user-\d'\)/)
  expect(await textOf(page, '#fields-title')).toBe('What the call returns')
  const hidden = `['explain', 'traffic'].map((id) => document.getElementById(id).querySelector('summary, [name=url]').checkVisibility())`
  expect(await page.evaluate(hidden)).toEqual([false, false])
  expect(mistakes).toEqual([])
})

test.each([400, 688])(
  'Embedded in a page, with a width of %i px, it has the height of its contents, and nothing in it scrolls.',
  async (width) => {
    const page = await browser.newPage()
    opened.push(page)
    await page.goto(`${site.url}/playground/style.css`)
    await page.setContent(
      `<iframe style="width:${width}px;height:20px" src="${site.url}/playground/?embed#fixed-window"></iframe>`,
    )
    const inner = `document.querySelector('iframe').contentDocument`
    await waitUntil(page, `${inner}?.body?.dataset.played === 'yes'`)
    const scrolls = `[...${inner}.querySelectorAll('*')].filter((one) => one.scrollHeight > one.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(one).overflowY)).map((one) => one.outerHTML.slice(0, 80))`
    await waitUntil(
      page,
      `document.querySelector('iframe').clientHeight > 300 && ${inner}.documentElement.scrollHeight <= document.querySelector('iframe').clientHeight`,
    )
    expect(await page.evaluate(scrolls)).toEqual([])
    expect(await page.evaluate(`document.querySelector('iframe').clientHeight`)).toBeLessThan(820)
  },
)

test('A request is explained when the explanation is opened.', async () => {
  const { page } = await open('several-limits')
  await page.click('summary')
  await waitUntil(page, `document.getElementById('why').textContent`)
  expect(await textOf(page, '#why')).toContain('POST https://www.example.com/login')
})

test('The quota of another client can be chosen.', async () => {
  const { page } = await openState(exampleOf('many clients and a cost'))
  const before = await page.evaluate(`document.querySelector('#timeline .quota').getAttribute('d')`)
  const other = await page.evaluate(`document.querySelectorAll('#watched option')[3].value`)
  await page.select('#watched', other as string)
  await waitUntil(page, isPlayed)
  await waitUntil(
    page,
    `document.querySelector('#timeline svg').getAttribute('aria-label').includes('${other}')`,
  )
  expect(
    await page.evaluate(`document.querySelector('#timeline .quota').getAttribute('d')`),
  ).not.toBe(before)
})

test('The same traffic is shown under five algorithms.', async () => {
  const { page } = await open('fixed-window')
  const rows = await rowsOf(page, '#compared')
  expect(rows.map(([title, , admitted, , most]) => [title, admitted, most])).toEqual([
    ['fixed-window', '20', '20'],
    ['sliding-window', '19', '19'],
    ['sliding-log', '13', '10'],
    ['token-bucket', '20', '19'],
    ['gcra', '10', '9'],
  ])
})

describe.each([390, 768, 1440])('at a width of %i px', (width) => {
  test.each(['light', 'dark'] as const)(
    'In the scheme %s nothing overflows, and axe finds no violation.',
    async (value) => {
      const { page, mistakes } = await open('several-limits', { width })
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      expect(await violationsOf(page)).toEqual([])
      expect(mistakes).toEqual([])
    },
  )
})

/** Types over the whole text, as a paste does. */
async function replaceText(page: Page, text: string) {
  await page.click('.cm-content')
  await page.keyboard.down('Control')
  await page.keyboard.press('a')
  await page.keyboard.up('Control')
  await page.keyboard.press('Backspace')
  // Without the brackets that the editor closes by itself.
  await page.keyboard.sendCharacter(text)
}
