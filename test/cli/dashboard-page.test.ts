/** The page of the dashboard in a real browser, in front of a Worker with fixed answers. */
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RunningDashboard, startDashboard } from '../../cli/dashboard/server.ts'
import {
  launchBrowser,
  openPage,
  pairsOf,
  rowsOf,
  textOf,
  violationsOf,
  waitForElement,
  waitUntil,
} from '../support/browser.ts'
import { seriesOf, statsAt } from '../support/dashboard-stats.ts'
import {
  FAKE_TOKEN,
  type FakeCall,
  type FakeWorker,
  startFakeWorker,
} from '../support/fake-worker.ts'

const policy = (name: string, more = {}) => ({
  name,
  algorithm: 'fixed-window',
  limit: 100,
  windowMs: 60_000,
  burst: 100,
  mode: 'enforce',
  key: ['ip'],
  onStoreError: 'allow',
  bans: true,
  decidedBy: 'store',
  ...more,
})
const state = (more = {}) => ({
  decidedAt: 1_795_305_360_000,
  limits: [
    {
      policy: 'per-ip',
      mode: 'enforce',
      limit: 100,
      windowMs: 60_000,
      cost: 1,
      allowed: true,
      remaining: 75,
      retryAfterMs: 0,
      resetAfterMs: 30_000,
      nextAfterMs: 30_000,
      ...more,
    },
  ],
})
const finding = {
  code: 'login-fails-open' as const,
  path: 'policies[1]',
  message: 'The policy fails open.',
  hint: "Set onStoreError to 'deny'.",
}

let worker: FakeWorker
let dashboard: RunningDashboard
let browser: Browser
let token = FAKE_TOKEN
let stats = statsAt(Date.now())
let policies = [policy('per-ip'), policy('login', { bans: false, key: ['ip', 'path'] })]
const opened: Page[] = []

beforeAll(async () => {
  worker = await startFakeWorker()
  dashboard = await startDashboard({
    url: worker.url,
    token: () => token,
    port: 0,
    findings: () => ({ file: 'sluice.config.ts', list: [finding] }),
  })
  browser = await launchBrowser()
})
beforeEach(() => {
  token = FAKE_TOKEN
  stats = statsAt(Date.now())
  policies = [policy('per-ip'), policy('login', { bans: false, key: ['ip', 'path'] })]
  overrides = {}
  bans = {}
  worker.calls.length = 0
  worker.answer = answer
})
afterEach(async () => {
  for (const page of opened.splice(0)) await page.close()
})
afterAll(async () => {
  await browser?.close()
  await dashboard?.close()
  await worker?.close()
})

let overrides: Record<string, object[]> = {}
/** The pages of banned keys. A policy without one has no list. */
let bans: Record<string, object> = {}

function answer({ path }: FakeCall) {
  const [, name] = /policies\/(.*)\/keys$/.exec(path) ?? []
  if (name) return { body: { overrides: overrides[decodeURIComponent(name)] } }
  const [, banned] = /policies\/(.*)\/bans$/.exec(path) ?? []
  if (banned) {
    const page = bans[decodeURIComponent(banned)]
    return page ? { body: page } : { status: 409, body: { detail: 'No list.' } }
  }
  if (path === '/_sluice/v1/stats') return { body: stats }
  if (path === '/_sluice/v1/policies') return { body: { policies, store: { status: 'ok' } } }
  if (path.endsWith('/ban')) {
    return {
      body: state({
        allowed: false,
        remaining: 0,
        retryAfterMs: 3_600_000,
        bannedForMs: 3_600_000,
      }),
    }
  }
  if (/peek|unban/.test(path)) return { body: state() }
  if (path.endsWith('/per-ip/try')) {
    const key = [{ part: 'ip', value: '203.0.113.7' }]
    return {
      body: {
        policy: 'per-ip',
        met: true,
        mode: 'enforce',
        key,
        limit: 100,
        windowMs: 60_000,
        cost: 1,
      },
    }
  }
  return { body: { policy: 'login', met: false, unmet: 'match', field: 'method' } }
}

/** Opens the dashboard, and waits for its first counts or its first message. */
async function open(size = {}) {
  const { page, mistakes } = await openPage(browser, dashboard.address, size)
  opened.push(page)
  await waitUntil(
    page,
    `!document.getElementById('counts').hidden || document.getElementById('problem').textContent`,
  )
  return { page, mistakes }
}

const click = (page: Page, label: string) => page.click(`[aria-label="${label}"]`)
const lastCall = (path: RegExp) => worker.calls.findLast((call) => path.test(call.path))

describe('the counts on the page', () => {
  test('The page shows the figures of the counts, and whose they are.', async () => {
    const { page, mistakes } = await open()
    expect(await textOf(page, '#worker')).toBe(worker.url)
    expect(await textOf(page, '#source')).toMatch(/^Counts of one isolate of the Worker since /)
    expect(await pairsOf(page, '#figures')).toEqual({
      'requests, last minute': '600',
      'refused, last minute': '180 (30%)',
      'store, p99': '≤ 50 ms',
      'a month costs': '$103.68',
    })
    expect(await textOf(page, '#status-title')).toBe('Healthy: the store decides')
    expect(await rowsOf(page, '#now')).toEqual([
      ['per-ip', '120', '22.2%', 'Clients'],
      ['login', '36', '100%', 'Clients'],
      ['(no policy)', '24', '100%', 'Clients'],
    ])
    expect(await rowsOf(page, '#requests')).toEqual([
      ['per-ip', '900', '700', '200', '0', '0', '0', '0', '0', '22.2%'],
      ['login', '60', '0', '0', '60', '0', '0', '0', '0', '100%'],
      ['(no policy)', '40', '0', '0', '0', '40', '0', '0', '0', '100%'],
      ['all policies', '1,000', '700', '200', '60', '40', '0', '0', '0', '30%'],
    ])
    expect(await pairsOf(page, '#store')).toEqual({
      circuit: 'closed: calls pass',
      'requests since the start': '1,000',
      'refused since the start': '300 (30%)',
      'decided without the store': '3',
      'median latency': '≤ 2 ms',
      'p99 latency': '≤ 50 ms',
      'HTTP calls': '500',
      'HTTP calls a request': '0.5',
      'billed commands': '2,000',
      'billed commands a request': '2',
      'errors: timeout': '3',
      'lost reports: log': '2',
    })
    expect(mistakes).toEqual([])
  })

  test('The page reads the counts again every 2 s, and keeps the focus.', async () => {
    const { page } = await open()
    await page.focus('[aria-label="Details x5f1zAAAAAAAAAAA"]')
    stats = statsAt(Date.now())
    stats.total.series.push(seriesOf('per-ip', 'shielded', 500))
    stats.total.offenders.reverse()
    await waitUntil(page, `document.querySelector('#store').textContent.includes('1,500')`)
    expect((await rowsOf(page, '#offenders')).map(([subject]) => subject)).toEqual([
      'x5f1zAAAAAAAAAAA',
      '3q2-7wAAAAAAAAAA',
    ])
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Details x5f1zAAAAAAAAAAA')
  })

  test('The chart has a text, and shows one policy by choice.', async () => {
    const { page } = await open()
    const label = () => page.evaluate(`document.getElementById('chart').ariaLabel`)
    expect(await label()).toBe(
      'Requests in the last 10 min: 1,000, of which 300 refused. Most in 10 s: 500.',
    )
    expect(await page.evaluate(`document.querySelectorAll('#chart rect').length`)).toBeGreaterThan(
      3,
    )
    expect(await textOf(page, '#chart .legend')).toMatch(/^requests in 10 s ?admitted/)
    const bar = (await page.$('#chart rect.limited'))!
    await bar.hover()
    expect(await textOf(page, '#chart .legend')).toMatch(
      /^from \w+ \d+, \d\d:\d\d:\d0 ?admitted 280limited 80banned 24denied 16$/,
    )
    await page.select('#view-policy', 'policy login')
    expect(await label()).toBe(
      'Requests in the last 10 min: 60, of which 60 refused. Most in 10 s: 30.',
    )
  })

  test('Refused requests have a chart of their own, so that they are visible beside many admitted ones.', async () => {
    stats.slots[0]!.series.push(seriesOf('per-ip', 'allowed', 100_000))
    const { page } = await open()
    expect(await page.evaluate(`document.getElementById('refused-chart').ariaLabel`)).toBe(
      'Refused requests in the last 10 min: 300. Most in 10 s: 150.',
    )
    expect(
      await page.evaluate(`document.querySelectorAll('#refused-chart rect').length`),
    ).toBeGreaterThan(3)
    // All of these are refused: the first chart shows them.
    await page.select('#view-policy', 'policy login')
    expect(await page.evaluate(`document.getElementById('refused-part').hidden`)).toBe(true)
  })

  test('A name that looks like markup is shown as text.', async () => {
    const evil = '<img src=x onerror="document.title=1">'
    policies = [policy(evil, { key: [evil] })]
    stats.total.series = [seriesOf(evil, 'limited', 5)]
    stats.slots = [{ ...stats.slots.at(-1)!, series: stats.total.series }]
    stats.total.offenders = [{ policy: evil, subject: evil, refusals: 5, error: 0 }]
    stats.dropped = { [evil]: 1 }
    const { page, mistakes } = await open()
    expect((await rowsOf(page, '#requests'))[0]!.slice(0, 2)).toEqual([evil, '5'])
    expect((await rowsOf(page, '#offenders'))[0]!.slice(0, 3)).toEqual([evil, evil, '5'])
    expect((await rowsOf(page, '#policies'))[0]![0]).toBe(evil)
    expect(await page.evaluate('document.images.length')).toBe(0)
    expect(await page.title()).toBe('Sluice dashboard')
    expect(mistakes).toEqual([])
  })
})

describe('the actions of the page', () => {
  const subject = '3q2-7wAAAAAAAAAA'
  /** The names of the buttons of the first limit in the details. */
  const offered = (page: Page) =>
    page.evaluate(
      `[...document.querySelectorAll('#client-limits section:first-child button')].map((one) => one.textContent)`,
    )
  const details = async (page: Page, of = subject) => {
    await click(page, `Details ${of}`)
    await waitForElement(page, '#client-limits dl')
  }

  test('The details of a client have the state of each limit with the same key, and only what is possible.', async () => {
    policies = [
      policy('per-ip'),
      policy('hourly', { bans: false, overrides: true }),
      policy('by-path', { key: ['ip', 'path'] }),
    ]
    const { page } = await open()
    await details(page)
    expect(await textOf(page, '#client-title')).toBe(subject)
    expect(await pairsOf(page, '#client-limits dl')).toEqual({
      used: '25 of 100 (25%)',
      'next request': 'passes',
      'full again in': '30 s',
      ban: 'not banned',
    })
    const asked = worker.calls.filter(({ path }) => path.endsWith('peek'))
    expect(asked.map(({ path, body }) => [path.split('/')[4], body])).toEqual([
      ['per-ip', { subject }],
      ['hourly', { subject }],
    ])
    expect(await offered(page)).toEqual(['Ban', 'Reset'])
    expect(await textOf(page, '#client-refusals')).toMatch(/^Before Nov \d+|^Before .*: 120$/)
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe(`Details ${subject}`)
  })

  test('A ban is asked for, with its time, and can be undone.', async () => {
    const { page } = await open()
    await details(page)
    await click(page, 'Ban per-ip')
    expect(worker.calls.some(({ path }) => path.endsWith('/ban'))).toBe(false)
    expect(await textOf(page, '#confirm-text')).toContain(`Ban ${subject}, policy per-ip?`)
    await page.select('#confirm-for select', '1d')
    await page.click('#confirm-yes')
    await waitUntil(page, `!document.getElementById('done').hidden`)
    expect(lastCall(/per-ip\/ban$/)!.body).toEqual({ subject, for: '1d' })
    await page.click('#undo')
    await waitUntil(page, `document.getElementById('done-text').textContent === 'Undone.'`)
    expect(lastCall(/unban/)!.body).toEqual({ subject })
  })

  test('The end of a ban says that used units stay, and its undo bans for the rest.', async () => {
    const banned = { allowed: false, remaining: 0, bannedForMs: 3_600_000, retryAfterMs: 3_600_000 }
    worker.answer = (call) => (call.path.endsWith('/peek') ? { body: state(banned) } : answer(call))
    const { page } = await open()
    await details(page)
    expect(await offered(page)).toEqual(['Unban', 'Reset'])
    await click(page, 'Unban per-ip')
    expect(await textOf(page, '#confirm-text')).toMatch(
      /Used units stay.*Reset gives the whole quota/,
    )
    await page.click('#confirm-yes')
    await waitUntil(page, `!document.getElementById('done').hidden`)
    expect(await textOf(page, '#done-text')).toContain('Used units stay.')
    await page.click('#undo')
    await waitUntil(page, `document.getElementById('done-text').textContent === 'Undone.'`)
    const { for: rest } = lastCall(/per-ip\/ban$/)!.body as { for: number }
    expect(rest).toBeGreaterThan(3_500_000)
    expect(rest).toBeLessThanOrEqual(3_600_000)
  })

  test('A limit is raised for a time, by the label or the values of the key, and its undo restores what was.', async () => {
    policies = [policy('per-ip', { overrides: true, bans: false })]
    stats.total.offenders = [
      { policy: 'per-ip', subject: 'ip=2001:db8::/56', refusals: 5, error: 0 },
    ]
    let own: object = {}
    worker.answer = (call) => (/peek|limit$/.test(call.path) ? { body: state(own) } : answer(call))
    const { page } = await open()
    const raise = async () => {
      await click(page, 'Raise limit per-ip')
      await page.click('#confirm-yes')
      await waitUntil(page, `!document.getElementById('done').hidden`)
    }
    await details(page, 'ip=2001:db8::/56')
    await raise()
    const path = '/_sluice/v1/policies/per-ip/keys/2001%3Adb8%3A%3A%2F56/limit'
    expect(lastCall(/limit$/)).toMatchObject({
      method: 'PUT',
      path,
      body: { limit: 200, for: '1d' },
    })
    await page.click('#undo')
    await waitUntil(page, `document.getElementById('done-text').textContent === 'Undone.'`)
    expect(lastCall(/limit$/)).toMatchObject({ method: 'DELETE', path })
    own = { limit: 500, overriddenForMs: 60_000 }
    await page.keyboard.press('Escape')
    await details(page, 'ip=2001:db8::/56')
    expect(await offered(page)).toEqual(['Raise limit', 'Remove limit', 'Reset'])
    await raise()
    await page.click('#undo')
    await waitUntil(page, `document.getElementById('done-text').textContent === 'Undone.'`)
    expect(lastCall(/limit$/)).toMatchObject({ method: 'PUT', body: { limit: 500 } })
  })

  test('A reset is asked for, and has no undo.', async () => {
    const { page } = await open()
    await details(page)
    await click(page, 'Reset per-ip')
    expect(await textOf(page, '#confirm-text')).toContain('It cannot be undone.')
    await page.click('#confirm-no')
    expect(lastCall(/reset/)).toBeUndefined()
    await click(page, 'Reset per-ip')
    await page.click('#confirm-yes')
    await waitUntil(page, `!document.getElementById('done').hidden`)
    expect(lastCall(/reset/)!.body).toEqual({ subject })
    expect(await page.evaluate(`document.getElementById('undo').hidden`)).toBe(true)
  })

  test('Refusals that come while the page is open have their time.', async () => {
    const { page } = await open()
    expect((await rowsOf(page, '#offenders'))[0]![3]).toBe('before this page')
    stats = statsAt(Date.now())
    stats.total.from -= 1 // another isolate has other counts
    stats.total.offenders[0]!.refusals = 500
    await waitUntil(page, `document.querySelector('#offenders').textContent.includes('500')`)
    expect((await rowsOf(page, '#offenders'))[0]![3]).toBe('before this page')
    const { from } = stats.total
    stats = statsAt(Date.now())
    stats.total.from = from
    stats.total.offenders[0]!.refusals = 512
    await waitUntil(page, `document.querySelector('#offenders').textContent.includes('512')`)
    expect((await rowsOf(page, '#offenders'))[0]![3]).toMatch(/^\d+ s ago$/)
    await details(page)
    expect(await textOf(page, '#client-refusals li')).toMatch(/, \d\d:\d\d:\d\d: 12, by per-ip$/)
  })

  test('Ten offenders are shown, and a button shows all of them.', async () => {
    stats.total.offenders = Array.from({ length: 32 }, (_, n) => ({
      policy: 'per-ip',
      subject: `client-${String(n).padStart(9, '0')}`,
      refusals: 100 - n,
      error: 0,
    }))
    const { page } = await open()
    expect(await rowsOf(page, '#offenders')).toHaveLength(10)
    expect(await textOf(page, '#offenders-more')).toBe('Show all 32')
    await page.click('#offenders-more')
    expect(await rowsOf(page, '#offenders')).toHaveLength(32)
    await page.click('#offenders-more')
    expect(await rowsOf(page, '#offenders')).toHaveLength(10)
    // Their policy has bans, and their labels are hashes.
    expect(await page.evaluate(`document.getElementById('offenders-hashed').hidden`)).toBe(false)
  })

  test('A readable label is an operation on the values of its key, and the label of a network is none.', async () => {
    const offender = (policy: string, subject: string) => ({
      policy,
      subject,
      refusals: 5,
      error: 0,
    })
    stats.total.offenders = [
      offender('per-ip', 'ip=203.0.113.7'),
      offender('login', 'ip=2001:db8::/56,path=/login'),
      offender('per-ip', '203.0.113.0/24'),
    ]
    const { page } = await open()
    await details(page, 'ip=203.0.113.7')
    expect(lastCall(/per-ip\/peek$/)!.body).toEqual({ key: ['203.0.113.7'] })
    await page.keyboard.press('Escape')
    await details(page, 'ip=2001:db8::/56,path=/login')
    expect(lastCall(/login\/peek$/)!.body).toEqual({ key: ['2001:db8::/56', '/login'] })
    expect((await rowsOf(page, '#offenders'))[2]!.at(-1)).toBe('Several clients')
    expect(await page.evaluate(`document.getElementById('offenders-hashed').hidden`)).toBe(true)
  })

  test('The form finds a client with a field for each of its parts, by keyboard.', async () => {
    const { page } = await open()
    await page.focus('#find select')
    await page.keyboard.type('login')
    await waitUntil(page, `document.querySelectorAll('#find-key input').length === 2`)
    await page.keyboard.press('Tab')
    await page.keyboard.type('203.0.113.7')
    await page.keyboard.press('Tab')
    await page.keyboard.type('/login')
    await page.keyboard.press('Enter')
    await waitForElement(page, '#client-limits dl')
    expect(lastCall(/login\/peek$/)!.body).toEqual({ key: ['203.0.113.7', '/login'] })
  })

  test('A refused action shows the reason.', async () => {
    worker.answer = (call) =>
      call.path.endsWith('/ban')
        ? { status: 422, body: { detail: 'for: expected at most 60000 ms' } }
        : answer(call)
    const { page } = await open()
    await details(page)
    await click(page, 'Ban per-ip')
    await page.click('#confirm-yes')
    await waitUntil(page, `document.getElementById('client-problem').textContent`)
    expect(await textOf(page, '#client-problem')).toBe('for: expected at most 60000 ms')
  })

  test('The form explains a request for each policy.', async () => {
    const { page } = await open()
    await page.type('#explain [name=ip]', '203.0.113.7')
    await page.type('#explain [name=headers]', 'X-User: a:b')
    await page.click('#explain button')
    await waitForElement(page, '#explain-answer tr')
    expect(await rowsOf(page, '#explain-answer')).toEqual([
      ['per-ip', 'yes', 'ip=203.0.113.7', '1', '100 per 1 min'],
      ['login', 'no: match.method does not fit', '', '', ''],
    ])
    expect(lastCall(/per-ip\/try/)!.body).toEqual({
      request: {
        method: 'GET',
        url: 'https://www.example.com/',
        ip: '203.0.113.7',
        headers: { 'X-User': 'a:b' },
      },
    })
  })

  test('The page lists the policies and the findings of the linter.', async () => {
    const { page } = await open()
    expect(await rowsOf(page, '#policies')).toEqual([
      ['per-ip', '100 per 1 min', 'fixed-window', 'ip', 'enforce', 'yes', 'allow'],
      ['login', '100 per 1 min', 'fixed-window', 'ip + path', 'enforce', 'no', 'allow'],
    ])
    expect(await textOf(page, '#findings-title')).toBe('Findings in sluice.config.ts')
    expect(await textOf(page, '#findings li')).toBe(
      "login-fails-open policies[1]: The policy fails open. Set onStoreError to 'deny'.",
    )
  })
})

describe('the keys that are banned now', () => {
  const subject = 'Fqd5XkY4blKIjVCl'
  const banCalls = () => worker.calls.filter(({ path }) => path.endsWith('/bans'))
  const isHidden = (page: Page, id: string) =>
    page.evaluate(`document.getElementById('${id}').hidden`)

  test('The page lists them with the rest of their ban, and names what it leaves out.', async () => {
    policies = [policy('a/b'), policy('per-ip'), policy('c', { bans: false })]
    bans = {
      'a/b': { bans: [{ subject, bannedForMs: 5_400_000 }], total: 1, next: `1:${subject}` },
      'per-ip': { bans: [{ subject: 'ip=<b>', bannedForMs: 5_000 }], total: 1_234 },
    }
    const { page, mistakes } = await open()
    await waitForElement(page, '#bans tr')
    expect((await rowsOf(page, '#bans')).map((row) => row.slice(0, 3))).toEqual([
      [subject, 'a/b', '1 h'],
      ['ip=<b>', 'per-ip', '5 s'],
    ])
    expect(await textOf(page, '#bans-more')).toBe('2 of 1,235. Find another client below.')
    expect(await isHidden(page, 'bans-none')).toBe(true)
    expect(banCalls().map(({ path }) => path)).toEqual([
      '/_sluice/v1/policies/a%2Fb/bans',
      '/_sluice/v1/policies/per-ip/bans',
    ])
    expect(mistakes).toEqual([])
    expect(await violationsOf(page)).toEqual([])
  })

  test('A button unbans a client, and the list is read again.', async () => {
    bans = { 'per-ip': { bans: [{ subject, bannedForMs: 5_000 }], total: 1 } }
    const { page } = await open()
    await waitForElement(page, '#bans tr')
    bans = { 'per-ip': { bans: [], total: 0 } }
    const banned = { body: state({ allowed: false, bannedForMs: 5_000 }) }
    worker.answer = (call) => (call.path.endsWith('peek') ? banned : answer(call))
    await click(page, `Unban ${subject}`)
    await waitUntil(page, `!document.getElementById('confirm').hidden`)
    await page.click('#confirm-yes')
    await waitUntil(page, `document.querySelectorAll('#bans tr').length === 0`)
    expect(worker.calls.find(({ path }) => path.endsWith('/unban'))).toMatchObject({
      path: '/_sluice/v1/policies/per-ip/unban',
      body: { subject },
    })
    expect(await textOf(page, '#bans-none')).toBe('No client is banned.')
    expect(await isHidden(page, 'bans-none')).toBe(false)
    expect(await isHidden(page, 'bans-list')).toBe(false)
  })

  test('A Worker without a list is asked once, and the page has no table.', async () => {
    const { page, mistakes } = await open()
    expect(await isHidden(page, 'bans-list')).toBe(true)
    await page.evaluate(`document.dispatchEvent(new Event('sluice-changed'))`)
    await page.evaluate(`fetch('/about').then(() => {})`) // behind a call of the event, if there is one
    expect(banCalls()).toHaveLength(1)
    expect(mistakes).toEqual([])
  })
})

describe('the limits that operators have set', () => {
  const subject = 'Fqd5XkY4blKIjVCl'

  test('The page lists them, with the rest of their time.', async () => {
    policies = [
      policy('a/b', { overrides: true }),
      policy('per-ip'),
      policy('c', { overrides: true }),
    ]
    overrides = {
      'a/b': [{ subject, limit: 50_000, overriddenForMs: 86_400_000 }],
      c: [{ subject: '<b>', limit: 1, overriddenForMs: 5_000 }],
    }
    const { page, mistakes } = await open()
    await waitForElement(page, '#overrides tr')
    expect((await rowsOf(page, '#overrides')).map((row) => row.slice(0, 4))).toEqual([
      [subject, 'a/b', '50,000', '1 d'],
      ['<b>', 'c', '1', '5 s'],
    ])
    // The page asks for them at once: the calls may arrive in any order.
    const asked = worker.calls.map(({ path }) => path).filter((path) => path.endsWith('/keys'))
    expect(asked.sort()).toEqual(['/_sluice/v1/policies/a%2Fb/keys', '/_sluice/v1/policies/c/keys'])
    expect(mistakes).toEqual([])
  })

  test('Without policies that allow them, there is no list and no call.', async () => {
    const { page } = await open()
    expect(await page.evaluate(`document.getElementById('overrides-list').hidden`)).toBe(true)
    expect(worker.calls.filter(({ path }) => path.endsWith('/keys'))).toEqual([])
  })
})

describe('the status on top of the page', () => {
  const broken = () => {
    const now = Date.now()
    return { circuit: 'open', openSince: now - 65_000, answeredAt: now - 70_000 } as const
  }
  const shown = async (more: object, list = policies) => {
    policies = list
    Object.assign(stats, more)
    const { page } = await open()
    const level = await page.evaluate(`document.getElementById('status').dataset.level`)
    const help = await page.evaluate(`!document.getElementById('status-help').hidden`)
    return [level, help, await textOf(page, '#status-title'), await textOf(page, '#status-text')]
  }

  test('An open circuit is said in words and colour, with what happens to requests, why, since when, and what to do.', async () => {
    const [level, help, title, text] = await shown(
      { ...broken(), failure: 'timeout', lastMinute: { decisions: 600, fallbacks: 590 } },
      [policy('per-ip', { onStoreError: 'local' }), policy('login', { onStoreError: 'deny' })],
    )
    expect([level, help]).toEqual(['bad', true])
    expect(title).toMatch(
      /^Refusing since \w+ \d+, \d\d:\d\d:\d\d, because the store does not answer in time$/,
    )
    expect(text).toBe(
      'login: all requests are refused with 503. per-ip: each isolate counts by itself, so a client gets its limit once in each. 590 of 600 requests of the last minute (98.3%) were decided without the store. The last answer in time came 1 min ago.',
    )
  })

  test.each([
    [
      'local',
      'unauthorized',
      'warning',
      /^Counting locally since .* the store refuses the token or the password$/,
    ],
    ['allow', 'unreachable', 'bad', /^Not limiting since .* the connection to the store fails$/],
    ['deny', 'redis-error', 'bad', /^Refusing since .* calls to the store fail \(redis-error\)$/],
  ])(
    'With the fallback %s and the failure %s the level is %s.',
    async (by, failure, level, title) => {
      const found = await shown({ ...broken(), failure }, [
        policy('per-ip', { onStoreError: by }),
        policy('shadow', { onStoreError: 'deny', mode: 'shadow' }),
      ])
      expect(found.slice(0, 3)).toEqual([level, true, expect.stringMatching(title)])
    },
  )

  test('Fallbacks of the last minute are a warning, also while the circuit is closed.', async () => {
    const found = await shown({ lastMinute: { decisions: 600, fallbacks: 12 } })
    expect(found.slice(0, 3)).toEqual([
      'warning',
      true,
      'The store answers, but not always in time',
    ])
    expect(found[3]).toContain('12 of 600 requests of the last minute (2%)')
  })

  test('Old fallbacks are none: the store is healthy again.', async () => {
    const found = await shown({ fallbacks: 1_237 })
    expect(found.slice(0, 3)).toEqual(['good', false, 'Healthy: the store decides'])
  })
})

describe('what the page shows', () => {
  test('Before the first request there is the command that sends it, and no table of zeros.', async () => {
    stats.total.series = []
    stats.slots = []
    const { page, mistakes } = await openPage(browser, dashboard.address)
    opened.push(page)
    await waitUntil(page, `!document.getElementById('first').hidden`)
    expect(await textOf(page, '#first-command')).toBe(`curl -i ${worker.url}/`)
    expect(await page.evaluate(`document.getElementById('counts').hidden`)).toBe(true)
    expect(await violationsOf(page)).toEqual([])
    stats = statsAt(Date.now())
    await waitUntil(page, `!document.getElementById('counts').hidden`)
    expect(await page.evaluate(`document.getElementById('first').hidden`)).toBe(true)
    expect(mistakes).toEqual([])
  })

  test('A filter by policy and by client holds for the refusals, the clients, the chart and the table.', async () => {
    const { page } = await open()
    await click(page, 'Clients login')
    expect((await rowsOf(page, '#now')).map(([name]) => name)).toEqual(['login'])
    expect((await rowsOf(page, '#offenders')).map(([name]) => name)).toEqual(['x5f1zAAAAAAAAAAA'])
    expect((await rowsOf(page, '#requests')).map(([name]) => name)).toEqual(['login'])
    await page.select('#view-policy', 'all policies')
    await page.type('#view-client', '3Q2')
    expect((await rowsOf(page, '#offenders')).map(([name]) => name)).toEqual(['3q2-7wAAAAAAAAAA'])
    await page.type('#view-client', 'none')
    expect(await textOf(page, '#offenders-none')).toBe('No client matches.')
  })

  test('A longer range shows what the command has seen, and a week only with a sink that keeps it.', async () => {
    const { page, mistakes } = await open()
    expect(await textOf(page, '#ranges')).toMatch(/10 min\s*1 h\s*24 h$/)
    await page.click('#ranges [value=hour]')
    await waitUntil(page, `/last 1 h/.test(document.getElementById('chart').ariaLabel)`)
    expect(await page.evaluate(`document.getElementById('chart').ariaLabel`)).toMatch(
      /^Requests in the last 1 h: [\d,]+, of which .* refused. Most in 1 min: /,
    )
    expect(await textOf(page, '#history-note')).toMatch(
      /^Since .*: this command keeps what it has seen/,
    )
    expect(mistakes).toEqual([])
  })

  test('A paused page does not change until it is live again.', async () => {
    const { page } = await open()
    await page.click('#live')
    expect(await textOf(page, '#live')).toBe('Paused')
    const calls = worker.calls.length
    stats = statsAt(Date.now())
    stats.total.offenders = []
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(worker.calls).toHaveLength(calls)
    expect(await rowsOf(page, '#offenders')).toHaveLength(2)
    await page.click('#live')
    await waitUntil(page, `document.querySelectorAll('#offenders tr').length === 0`)
  })

  test('10⁹ requests of a million clients fit on a phone and on a screen: no label is cut, and no column is hidden.', async () => {
    stats.total.series = stats.total.series.map((one) => ({ ...one, decisions: 1e9 }))
    stats.slots = stats.slots.map((slot) => ({
      ...slot,
      series: slot.series.map((one) => ({ ...one, decisions: 1e9 })),
    }))
    stats.total.offenders = Array.from({ length: 8_192 }, (_, n) => ({
      policy: 'per-ip',
      subject: `ip=2001:db8:${n.toString(16)}:ffff:ffff:ffff:ffff:ffff`,
      refusals: 1e9 - n,
      error: 1e6,
    }))
    bans = {
      'per-ip': {
        bans: Array.from({ length: 100 }, (_, n) => ({
          subject: `${n}`.padStart(16, 'x'),
          bannedForMs: 5e6,
        })),
        total: 1e6,
      },
    }
    const { page, mistakes } = await open()
    for (const width of [390, 768, 1440]) {
      await page.setViewport({ width, height: 900 })
      const cut = await page.evaluate(`({
        page: document.documentElement.scrollWidth - innerWidth,
        tables: [...document.querySelectorAll('table')]
          .filter((one) => one.parentElement.scrollWidth > one.parentElement.clientWidth + 1).length,
      })`)
      expect([width, cut]).toEqual([width, { page: 0, tables: 0 }])
    }
    expect(await rowsOf(page, '#offenders')).toHaveLength(10)
    expect((await pairsOf(page, '#figures'))['requests, last minute']).toBe('10B')
    expect(mistakes).toEqual([])
  })
})

describe('the messages of the page', () => {
  test('A mistake of the page itself is a message, and not a blank page.', async () => {
    stats = { ...stats, total: { ...stats.total, series: null as never } }
    const { page } = await open()
    expect(await textOf(page, '#problem')).toMatch(/series|null|iterable/)
    await page.evaluate(`void setTimeout(() => { throw new RangeError('Invalid language tag') })`)
    await waitUntil(page, `/language tag/.test(document.getElementById('problem').textContent)`)
    expect(await textOf(page, '#problem')).toBe(
      'The page has failed: Invalid language tag. Reload it.',
    )
  })

  test.each<[string, () => void, RegExp]>([
    ['A wrong token', () => (token = 'another-token-0000'), /refuses the token \(401\).*--token/],
    [
      'A Worker without the decision API',
      () => (worker.answer = () => undefined),
      /no decision API.*SLUICE_OPERATE_TOKEN/,
    ],
    [
      'A Worker that does not observe',
      () => (worker.answer = (call) => (call.path.endsWith('stats') ? undefined : answer(call))),
      /Add to sluice\.config\.ts.*use: \[observe\(\)\]/s,
    ],
    [
      'Another program at the address',
      () => (worker.answer = () => ({ body: '<h1>hello</h1>' })),
      /answers 200 without JSON/,
    ],
  ])('%s is named in the message.', async (_, prepare, message) => {
    prepare()
    const { page } = await open()
    expect(await textOf(page, '#problem')).toMatch(message)
    expect(await page.evaluate(`document.getElementById('problem').role`)).toBe('alert')
  })

  test('When the Worker stops and comes back, the message comes and goes.', async () => {
    const { page } = await open()
    worker.answer = () => ({ status: 503, body: { detail: 'The Worker is being replaced.' } })
    await waitUntil(page, `document.getElementById('problem').textContent`)
    expect(await textOf(page, '#problem')).toBe('The Worker is being replaced.')
    worker.answer = answer
    await waitUntil(page, `!document.getElementById('problem').textContent`)
  })
})

test.each(['light', 'dark'])(
  'At a width of 360 px nothing is cut off, and every field has a name, in %s mode.',
  async (scheme) => {
    const { page, mistakes } = await open({ width: 360, height: 740 })
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    const { overflow, background } = (await page.evaluate(`({
      overflow: document.documentElement.scrollWidth - innerWidth,
      background: getComputedStyle(document.body).backgroundColor,
    })`)) as { overflow: number; background: string }
    expect(overflow).toBeLessThanOrEqual(0)
    expect(background).toBe(scheme === 'dark' ? 'rgb(20, 23, 27)' : 'rgb(255, 255, 255)')
    const unnamed = await page.evaluate(
      `[...document.querySelectorAll('input, select, textarea, button')]
        .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent).length`,
    )
    expect(unnamed).toBe(0)
    // The actions of an offender are in one line.
    const tops = await page.evaluate(
      `[...document.querySelectorAll('#offenders tr:first-child button')].map((one) => one.getBoundingClientRect().top)`,
    )
    expect(new Set(tops as number[]).size).toBe(1)
    expect(await violationsOf(page)).toEqual([])
    expect(mistakes).toEqual([])
  },
)
