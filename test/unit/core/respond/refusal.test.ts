/** Own responses to refused requests: which one applies, its placeholders, and its fields. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Decision, LimitState } from '../../../../src/core/base/decision.ts'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { refuse } from '../../../../src/core/respond/refusal.ts'
import { write } from '../../../../src/features/refusals/stages.ts'
import { anyText } from '../../../support/any-text.ts'
import { refusals } from '../../../support/features.ts'

const HTML = 'text/html,*/*;q=0.8'

const limitOf = (policy: string, retryAfterMs: number | null, rest = {}): LimitState => ({
  policy,
  mode: 'enforce',
  limit: 10,
  windowMs: 60_000,
  cost: 2,
  allowed: false,
  remaining: 1,
  retryAfterMs,
  resetAfterMs: 60_000,
  nextAfterMs: 1_000,
  ...rest,
})
const limited = (...limits: LimitState[]): Decision => ({
  allowed: false,
  reason: 'limited',
  retryAfterMs: limits.some(({ retryAfterMs }) => retryAfterMs === null)
    ? null
    : Math.max(...limits.map(({ retryAfterMs }) => retryAfterMs!)),
  limits,
})
const denied = (by: string, lacking = {}): Decision => ({
  allowed: false,
  reason: 'denied',
  denied: { by, ...lacking },
  retryAfterMs: null,
  limits: [],
})
const once = limited(limitOf('a', 4_200))

type Own = PolicyOptions['refusal']
interface Case {
  /** The refusals of policies, by name. */
  policies?: Record<string, Own>
  all?: Own
  accept?: string | null
  lines?: string[]
}

function configOf({ policies = {}, all }: Case) {
  const options: ConfigOptions = {
    refusal: all,
    use: [refusals()],
    policies: Object.entries({ a: undefined, b: undefined, ...policies }).map(
      ([name, refusal]) => ({ name, limit: 10, window: '1m', refusal }),
    ),
  }
  return parseConfig(options)
}

function refused(decision: Decision, one: Case, config = configOf(one)) {
  const { accept = null, lines = [] } = one
  const log = (event: string, code: string) => void lines.push(`${event} ${code}`)
  const request = new Request('https://a.test/', { headers: accept === null ? {} : { accept } })
  return refuse(decision, request, config, { refuse: write }, log, () => 'the context')
}

const text = (value: string): Own => ({ body: { text: value } })

describe('the choice of a refusal', () => {
  const policies = { a: text('of a'), b: text('of b') }
  const all = text('of all')

  test.each<[string, Decision, string]>([
    ['the only policy that refuses', once, 'of a'],
    ['the policy with the longest wait', limited(limitOf('a', 10), limitOf('b', 20)), 'of b'],
    ['the first of equal waits', limited(limitOf('a', 10), limitOf('b', 10)), 'of a'],
    ['the policy that never admits', limited(limitOf('a', 10), limitOf('b', null)), 'of b'],
    [
      'the policy that refuses, not the one that admits',
      limited(limitOf('a', 0, { allowed: true }), limitOf('b', 5)),
      'of b',
    ],
    [
      'the enforced policy, not the shadow',
      limited(limitOf('a', 99, { mode: 'shadow' }), limitOf('b', 5)),
      'of b',
    ],
    ['the policy without its key', denied('b', { missing: 'header:x' }), 'of b'],
    ['all, for an entry of deny with the name of a policy', denied('b'), 'of all'],
    ['all, for a policy without a refusal', limited(limitOf('c', 1)), 'of all'],
    ['all, for the shield', { ...limited(), reason: 'shielded', retryAfterMs: 10_000 }, 'of all'],
    [
      'all, for a fallback',
      { ...limited(), reason: 'store-error', fallback: 'deny', retryAfterMs: null },
      'of all',
    ],
  ])('The refusal is that of %s.', async (_, decision, body) => {
    const response = await refused(decision, { policies: { ...policies, c: undefined }, all })
    expect(await response.text()).toBe(body)
  })
})

describe('the body of a refusal', () => {
  const own = {
    body: {
      json: { seconds: '{{retryAfter}}' },
      text: '{{retryAfter}} s',
      html: '<b>{{limit}}</b>',
    },
  }

  test.each<[string | null, Own, string, string]>([
    [null, own, 'application/json;charset=utf-8', '{"seconds":5}'],
    [HTML, own, 'text/html;charset=utf-8', '<b>10</b>'],
    ['text/plain', own, 'text/plain;charset=utf-8', '5 s'],
    ['*/*', text('x'), 'text/plain;charset=utf-8', 'x'],
    [HTML, text('x'), 'text/plain;charset=utf-8', 'x'],
    [HTML, { body: { json: null } }, 'application/json;charset=utf-8', 'null'],
    [HTML, { body: { html: 'x' } }, 'text/html;charset=utf-8', 'x'],
    [null, { body: { text: '' } }, 'text/plain;charset=utf-8', ''],
  ])('For the Accept %j and %j it has the type %s.', async (accept, all, type, body) => {
    const response = await refused(once, { all, accept })
    expect(response.headers.get('content-type')).toBe(type)
    expect(await response.text()).toBe(body)
  })

  test.each([undefined, { body: { html: 'x' } }, { status: 420 }])(
    'With the refusal %j, a client without Accept gets the problem document.',
    async (all) => {
      const response = await refused(once, { all })
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      const status = all && 'status' in all ? 420 : 429
      expect(await response.json()).toMatchObject({ status, title: 'Quota exceeded' })
      expect(response.status).toBe(status)
    },
  )

  test('JSON placeholders keep their types, also within objects and lists.', async () => {
    const json = {
      list: ['{{limit}}', '{{policy}}', 'at {{ limit }} of {{policy}}', 7, null, true],
      unknown: ['{{retryAfter}}', '[{{retryAfter}}]'],
      '{{limit}}': '',
    }
    const never = limited(limitOf('a', null))
    const response = await refused(never, { all: { body: { json } } })
    expect(await response.json()).toEqual({
      list: [10, 'a', 'at 10 of a', 7, null, true],
      unknown: [null, null],
      '{{limit}}': '',
    })
  })

  test('All placeholders have the values of the policy that refuses longest.', async () => {
    const all = text(
      '{{limit}} {{remaining}} {{retryAfter}} {{window}} {{cost}} {{policy}} {{reason}} {{status}}',
    )
    const other = limitOf('b', 1_000, { limit: 7, remaining: 3, cost: 9, windowMs: 1_000 })
    const response = await refused(limited(other, limitOf('a', 4_200)), { all })
    expect(await response.text()).toBe('10 1 5 60 2 a limited 429')
  })

  test.each(['limit', 'remaining', 'retryAfter', 'window', 'cost'])(
    'A text or a field with {{%s}} is not sent where it has no value: the client gets the default.',
    async (name) => {
      const says = `{{policy}}: {{${name}}}`
      const headers = { 'X-Wait': says, 'X-Policy': '{{policy}}' }
      const all = { body: { text: says, html: says }, headers }
      const texts: (string | null)[] = []
      for (const accept of ['text/plain', HTML]) {
        const known = await refused(once, { all, accept })
        expect(await known.text()).toBe(known.headers.get('x-wait'))
        const unknown = await refused(denied('office'), { all, accept })
        expect(unknown.headers.has('x-wait')).toBe(false)
        expect(unknown.headers.get('x-policy')).toBe('office')
        texts.push(unknown.headers.get('content-type'), await unknown.text())
      }
      expect(texts).toEqual([
        'application/problem+json',
        expect.stringContaining('"title":"Forbidden"'),
        'text/html;charset=utf-8',
        expect.stringContaining('<h1>Forbidden</h1>'),
      ])
    },
  )
})

describe('the default', () => {
  test.each([
    [HTML, 'text/html;charset=utf-8'],
    ['text/html', 'text/html;charset=utf-8'],
    ['TEXT/HTML , */*', 'text/html;charset=utf-8'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html;charset=utf-8'],
    ['application/json, text/html', 'application/problem+json'],
    ['text/html, application/problem+json;q=0.5', 'application/problem+json'],
    ['text/html;q=0, */*', 'application/problem+json'],
    ['text/*', 'application/problem+json'],
    ['text/htmlx', 'application/problem+json'],
    ['*/*', 'application/problem+json'],
    ['', 'application/problem+json'],
    [null, 'application/problem+json'],
  ])('For the Accept %j it has the type %s.', async (accept, type) => {
    const { headers, status } = await refused(once, { accept })
    expect([status, headers.get('content-type')]).toEqual([429, type])
    expect(headers.has('content-security-policy')).toBe(type.startsWith('text/html'))
  })

  test('Without a wait the page has the detail of the problem.', async () => {
    const response = await refused(denied('b', { missing: 'header:x' }), { accept: HTML })
    expect(response.status).toBe(403)
    expect(await response.text()).toContain('<h1>Forbidden</h1><p>The request lacks header:x.')
  })
})

describe('the fields of a refusal', () => {
  test('Every refusal has Retry-After and no-store, whatever the refusal sets.', async () => {
    const fields = { 'cache-control': 'public', 'RETRY-AFTER': '0', 'content-type': 'image/png' }
    const cases: Own[] = [
      undefined,
      { headers: fields },
      { headers: fields, body: { text: 'x' } },
      () => new Response('x', { status: 429, headers: fields }),
    ]
    for (const all of cases) {
      for (const accept of [null, HTML]) {
        const { headers } = await refused(once, { all, accept })
        expect([headers.get('retry-after'), headers.get('cache-control')]).toEqual([
          '5',
          'no-store',
        ])
        if (typeof all !== 'function') expect(headers.get('content-type')).not.toBe('image/png')
      }
    }
  })

  test('Header values may contain placeholders, and a value cannot begin another field.', async () => {
    const all = { headers: { 'x-limit': '{{policy}};q={{limit}}', 'x-plain': 'yes' } }
    const hostile = limited(limitOf('a\r\nset-cookie: x=1\u2028é', 5))
    const { headers } = await refused(hostile, { all })
    expect(headers.get('x-limit')).toBe('a  set-cookie: x=1  ;q=10')
    expect(headers.get('x-plain')).toBe('yes')
    expect(headers.has('set-cookie')).toBe(false)
  })
})

describe('hostile values', () => {
  /** States a law about the response to a refusal by a policy with any name. */
  const law = (
    claim: string,
    all: Own,
    check: (response: Response, policy: string) => Promise<void> | void,
  ) => {
    const one = { all, accept: HTML }
    const config = configOf(one)
    test(claim, () =>
      fc.assert(
        fc.asyncProperty(anyText, async (policy) =>
          check(await refused(limited(limitOf(policy, 5)), one, config), policy),
        ),
      ),
    )
  }

  const html = '<p title="{{policy}}">{{policy}}</p><a title=\'{{policy}}\'></a>'
  law(
    'No value adds an element or an attribute to HTML.',
    { body: { html } },
    async (response, policy) => {
      const [, quoted, content, single] =
        /^<p title="([^"<>]*)">([^"'<>]*)<\/p><a title='([^'<>]*)'><\/a>$/.exec(
          await response.text(),
        )!
      const decoded = content!.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
      expect(decoded).toBe(policy.toWellFormed())
      expect([quoted, single]).toEqual([content, content])
    },
  )

  const json = { whole: '{{policy}}', part: 'at {{policy}}!', list: [1, '{{limit}}'] }
  law('No value changes the structure of JSON.', { body: { json } }, async (response, policy) => {
    const expected = { whole: policy, part: `at ${policy}!`, list: [1, 10] }
    expect(await response.json()).toEqual(expected)
  })

  const fields = { headers: { 'x-policy': '<{{policy}}>' } }
  law('No value ends a header field or makes it invalid.', fields, ({ headers }) => {
    expect(headers.get('x-policy')).toMatch(/^<[ -~]*>$/)
    const added = ['cache-control', 'content-type', 'retry-after', 'x-policy']
    expect([...headers.keys()].filter((name) => name !== 'content-security-policy').sort()).toEqual(
      added,
    )
  })

  test('A placeholder within a value is not replaced.', async () => {
    const response = await refused(limited(limitOf('{{limit}}', 5)), { all: text('{{policy}}') })
    expect(await response.text()).toBe('{{limit}}')
  })
})

describe('a function', () => {
  test('It gets the decision and the context, and its response is sent.', async () => {
    const all: Own = (decision, c) =>
      Response.json([decision.reason, c], { status: 420, headers: { 'x-own': 'yes' } })
    const response = await refused(once, { all })
    expect([response.status, response.headers.get('x-own')]).toEqual([420, 'yes'])
    expect(await response.json()).toEqual(['limited', 'the context'])
  })

  const used = new Response('x', { status: 429 })
  test.each<[string, () => unknown, string]>([
    ['throws', () => JSON.parse('{'), 'SyntaxError'],
    ['throws nothing', () => Promise.reject(undefined), ''],
    ['rejects', () => Promise.reject(new RangeError()), 'RangeError'],
    ['returns nothing', () => undefined, 'TypeError'],
    ['returns a text', () => 'slow down', 'TypeError'],
    ['returns a response with status 200', () => new Response('fine'), 'TypeError'],
    ['returns a redirect', () => Response.redirect('https://example.com'), 'TypeError'],
    ['returns an error response', () => Response.error(), 'TypeError'],
    ['returns a response that was read', () => used.text().then(() => used), 'TypeError'],
  ])('If it %s, the default is sent and the error is logged.', async (_, run, code) => {
    const lines: string[] = []
    const response = await refused(once, { all: run as never, lines })
    expect(lines).toEqual([`refusal-error ${code}`])
    expect(response.status).toBe(429)
    expect(await response.json()).toMatchObject({ title: 'Quota exceeded' })
  })
})
