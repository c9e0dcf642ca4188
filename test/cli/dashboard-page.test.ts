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
    const since = 'since the start'
    expect(await pairsOf(page, '#figures')).toMatchObject({
      [`requests ${since}`]: '1,000',
      [`refused ${since}`]: '300 (30%)',
      'requests, last minute': expect.stringMatching(/^[\d.]+ a second$/),
      'refused, last minute': '30%',
      [`store latency, median ${since}`]: '≤ 2 ms',
      [`store latency, p99 ${since}`]: '≤ 50 ms',
      [`HTTP calls ${since}`]: '0.5 a request',
      [`billed commands ${since}`]: '2 a request',
      'cost at the rate of the last minute': expect.stringMatching(/^\$[\d.,]+ a month$/),
      [`fallbacks ${since}`]: '3 decisions',
    })
    expect(await rowsOf(page, '#requests')).toEqual([
      ['per-ip', '900', '700', '200', '0', '0', '0', '0', '0', '22.2%'],
      ['login', '60', '0', '0', '60', '0', '0', '0', '0', '100%'],
      ['(no policy)', '40', '0', '0', '0', '40', '0', '0', '0', '100%'],
      ['all policies', '1,000', '700', '200', '60', '40', '0', '0', '0', '30%'],
    ])
    expect(await pairsOf(page, '#store')).toEqual({
      circuit: 'closed',
      'HTTP calls': '500',
      'billed commands': '2,000',
      'errors: timeout': '3',
      'lost reports: log': '2',
    })
    expect(mistakes).toEqual([])
  })

  test('The page reads the counts again every 2 s, and keeps the focus.', async () => {
    const { page } = await open()
    await page.focus('[aria-label="Peek x5f1zAAAAAAAAAAA"]')
    stats = statsAt(Date.now())
    stats.total.series.push(seriesOf('per-ip', 'shielded', 500))
    stats.total.offenders.reverse()
    await waitUntil(page, `document.querySelector('#figures dd').textContent === '1,500'`)
    expect((await rowsOf(page, '#offenders')).map(([subject]) => subject)).toEqual([
      'x5f1zAAAAAAAAAAA',
      '3q2-7wAAAAAAAAAA',
    ])
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Peek x5f1zAAAAAAAAAAA')
  })

  test('The chart has a text, and shows one policy by choice.', async () => {
    const { page } = await open()
    const label = () => page.evaluate(`document.getElementById('chart').ariaLabel`)
    expect(await label()).toBe(
      'Requests in the last 10 minutes: 1,000, of which 300 refused. Most in 10 s: 500.',
    )
    expect(await page.evaluate(`document.querySelectorAll('#chart canvas').length`)).toBe(1)
    await page.select('#chart-policy', 'policy login')
    expect(await label()).toBe(
      'Requests in the last 10 minutes: 60, of which 60 refused. Most in 10 s: 30.',
    )
  })

  test('Refused requests have a chart of their own, so that they are visible beside many admitted ones.', async () => {
    stats.slots[0]!.series.push(seriesOf('per-ip', 'allowed', 100_000))
    const { page } = await open()
    expect(await page.evaluate(`document.getElementById('refused-chart').ariaLabel`)).toBe(
      'Refused requests in the last 10 minutes: 300. Most in 10 s: 150.',
    )
    expect(await page.evaluate(`document.querySelectorAll('#refused-chart canvas').length`)).toBe(1)
    // All of these are refused: the first chart shows them.
    await page.select('#chart-policy', 'policy login')
    expect(await page.evaluate(`document.getElementById('refused-part').hidden`)).toBe(true)
  })

  test('A name that looks like markup is shown as text.', async () => {
    const evil = '<img src=x onerror="document.title=1">'
    policies = [policy(evil, { key: [evil] })]
    stats.total.series = [seriesOf(evil, 'limited', 5)]
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
  test('The buttons of an offender look at it, ban it and unban it by its label.', async () => {
    const { page } = await open()
    const subject = '3q2-7wAAAAAAAAAA'
    expect(await rowsOf(page, '#offenders')).toEqual([
      [subject, 'per-ip', '120', 'PeekBanUnban'],
      ['x5f1zAAAAAAAAAAA', 'login', '48 to 60', 'PeekBanUnbanNo bans: the policy has no penalty.'],
    ])
    await click(page, `Peek ${subject}`)
    await waitForElement(page, '#look-answer dl')
    expect(await textOf(page, '#look-answer h3')).toBe(`${subject}, policy per-ip`)
    expect(await pairsOf(page, '#look-answer dl')).toEqual({
      used: '25 of 100 (25%)',
      remaining: '75',
      'next request': 'allowed',
      'full again in': '30 s',
      ban: 'not banned',
    })
    expect(lastCall(/peek/)!.body).toEqual({ subject })
    await page.select('#ban-for', '1d')
    await click(page, `Ban ${subject}`)
    await waitUntil(
      page,
      `document.getElementById('look-answer').textContent.includes('banned for 1 h')`,
    )
    expect(lastCall(/per-ip\/ban$/)!.body).toEqual({ subject, for: '1d' })
    await click(page, `Unban ${subject}`)
    await waitUntil(
      page,
      `document.getElementById('look-answer').textContent.includes('not banned')`,
    )
    expect(lastCall(/unban/)!.body).toEqual({ subject })
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
    await click(page, 'Peek ip=203.0.113.7')
    await waitForElement(page, '#look-answer dl')
    expect(lastCall(/per-ip\/peek$/)!.body).toEqual({ key: ['203.0.113.7'] })
    await click(page, 'Peek ip=2001:db8::/56,path=/login')
    await waitUntil(page, `/login/.test(document.getElementById('look-answer').textContent)`)
    expect(lastCall(/login\/peek$/)!.body).toEqual({ key: ['2001:db8::/56', '/login'] })
    expect((await rowsOf(page, '#offenders'))[2]![3]).toBe('The label stands for several clients.')
    expect(await page.evaluate(`document.getElementById('offenders-hashed').hidden`)).toBe(true)
  })

  test('The form says why a policy without bans has no active ban button.', async () => {
    const { page } = await open()
    const isDisabled = () => page.evaluate(`document.querySelector('#look [value=ban]').disabled`)
    expect(await isDisabled()).toBe(false)
    await page.select('#look select', 'login')
    expect(await isDisabled()).toBe(true)
    expect(await textOf(page, '#look-no-bans')).toContain('The policy has no bans.')
    expect(await page.evaluate(`document.getElementById('look-no-bans').hidden`)).toBe(false)
  })

  test('A policy without bans has no active ban button.', async () => {
    const { page } = await open()
    const isDisabled = await page.evaluate(
      `document.querySelector('[aria-label="Ban x5f1zAAAAAAAAAAA"]').disabled`,
    )
    expect(isDisabled).toBe(true)
  })

  test('The form looks at a key with a field for each of its parts, by keyboard.', async () => {
    const { page } = await open()
    await page.focus('#look select')
    await page.keyboard.type('login')
    await waitUntil(page, `document.querySelectorAll('#look-key input').length === 2`)
    await page.keyboard.press('Tab')
    await page.keyboard.type('203.0.113.7')
    await page.keyboard.press('Tab')
    await page.keyboard.type('/login')
    await page.keyboard.press('Enter')
    await waitForElement(page, '#look-answer dl')
    expect(lastCall(/login\/peek$/)!.body).toEqual({ key: ['203.0.113.7', '/login'] })
  })

  test('A refused action shows the reason.', async () => {
    worker.answer = (call) =>
      call.path.endsWith('/ban')
        ? { status: 422, body: { detail: 'for: expected at most 60000 ms' } }
        : answer(call)
    const { page } = await open()
    await click(page, 'Ban 3q2-7wAAAAAAAAAA')
    await waitUntil(page, `document.getElementById('look-problem').textContent`)
    expect(await textOf(page, '#look-problem')).toBe(
      'ban 3q2-7wAAAAAAAAAA, policy per-ip: for: expected at most 60000 ms',
    )
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
      ['per-ip', '100 per 1 min', 'fixed-window', 'ip', 'enforce', 'yes', 'store'],
      ['login', '100 per 1 min', 'fixed-window', 'ip + path', 'enforce', 'no', 'store'],
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
      [subject, 'a/b', '1.5 h'],
      ['ip=<b>', 'per-ip', '5 s'],
    ])
    expect(await textOf(page, '#bans-more')).toBe('2 of 1,235 bans.')
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
    await page.click(`[aria-label="Unban ${subject}"]:not(#offenders *)`)
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
    await page.evaluate(`document.dispatchEvent(new Event('bans-changed'))`)
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
    expect(await rowsOf(page, '#overrides')).toEqual([
      [subject, 'a/b', '50,000', '1 d'],
      ['<b>', 'c', '1', '5 s'],
    ])
    expect(
      worker.calls.filter(({ path }) => path.endsWith('/keys')).map(({ path }) => path),
    ).toEqual(['/_sluice/v1/policies/a%2Fb/keys', '/_sluice/v1/policies/c/keys'])
    expect(mistakes).toEqual([])
  })

  test('Without policies that allow them, there is no list and no call.', async () => {
    const { page } = await open()
    expect(await page.evaluate(`document.getElementById('overrides-list').hidden`)).toBe(true)
    expect(worker.calls.filter(({ path }) => path.endsWith('/keys'))).toEqual([])
  })

  test('A look at a client shows the limit that an operator has set for it.', async () => {
    worker.answer = (call) =>
      call.path.endsWith('/peek')
        ? { body: state({ limit: 500, overriddenForMs: 3_600_000 }) }
        : answer(call)
    const { page } = await open()
    await click(page, 'Peek 3q2-7wAAAAAAAAAA')
    await waitForElement(page, '#look-answer dl')
    expect(await pairsOf(page, '#look-answer dl')).toMatchObject({
      used: '425 of 500 (85%)',
      'set by an operator': 'for 1 h',
    })
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
