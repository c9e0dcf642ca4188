/** Own refusals and the page for browsers. */
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import type { FetchOptions } from '../../../tools/stack.ts'
import { API_TOKEN, apiOf, apiTokens } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const policy = (name: string, rest: Partial<PolicyOptions> = {}): PolicyOptions => ({
  ...{ name, algorithm: 'fixed-window', limit: 1, window: '1h', match: { path: `/${name}` } },
  ...rest,
})
const saying = (text: string): PolicyOptions['refusal'] => ({ body: { text } })

const gateway = useGateway({
  env: apiTokens,
  config: {
    refusal: {
      body: {
        json: { error: '{{reason}}', by: '{{policy}}', seconds: '{{retryAfter}}' },
        html: '<h1>{{reason}} by {{policy}}</h1>',
      },
      headers: { 'X-Status': '{{status}}' },
    },
    deny: { name: 'abuse', ip: '192.0.2.66' },
    policies: [
      policy('plain'),
      policy('default', { refusal: {} }),
      policy('own', { refusal: { status: 503, body: { text: 'wait {{retryAfter}}' } } }),
      policy('short', {
        window: '1m',
        match: { path: '/both' },
        refusal: saying('short'),
      }),
      policy('long', { match: { path: '/both' }, refusal: saying('long') }),
      policy('keyed', {
        key: 'header:x-key',
        onMissingKey: 'refuse',
        refusal: saying('no {{policy}}'),
      }),
      policy('banned', {
        penalty: { after: 1, within: '1h', ban: '2h' },
        refusal: saying('{{reason}} {{retryAfter}}'),
      }),
      policy('bots', { match: { path: '/bots', botScore: { below: 30 } } }),
    ],
  },
})

let clients = 0
/** The second answer to a new client. */
async function refused(path: string, options: FetchOptions = {}) {
  const ip = `198.51.100.${++clients}`
  await (await gateway.fetch(path, { ip, ...options })).arrayBuffer()
  return gateway.fetch(path, { ip, ...options })
}
const accepting = (accept: string) => ({ headers: { accept } })

describe('a refusal of the gateway', () => {
  test('A browser gets the page by default, with its fields, and a strict policy.', async () => {
    const response = await refused('/default', accepting(BROWSER))
    expect(response.status).toBe(429)
    const { headers } = response
    expect(headers.get('content-type')).toBe('text/html;charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'nonce-[\w-]+';base-uri 'none'$/,
    )
    expect(headers.get('retry-after')).toMatch(/^3(600|59\d)$/)
    expect(headers.get('ratelimit')).toMatch(/^"default";r=0;t=3(600|59\d)$/)
    expect(await response.text()).toContain('in <b id=60>60</b> min')
  })

  test.each(['*/*', 'application/json, text/plain, */*', ''])(
    'A client with the Accept %j gets the problem document by default.',
    async (accept) => {
      const response = await refused('/default', accepting(accept))
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(await response.json()).toMatchObject({ status: 429 })
    },
  )

  test('The refusal of the configuration applies to a policy without one.', async () => {
    const response = await refused('/plain', accepting('*/*'))
    expect(response.headers.get('x-status')).toBe('429')
    const body = (await response.json()) as { seconds: number }
    expect(body).toEqual({ error: 'limited', by: 'plain', seconds: body.seconds })
    expect(String(body.seconds)).toBe(response.headers.get('retry-after'))
    const page = await refused('/plain', accepting(BROWSER))
    expect(await page.text()).toBe('<h1>limited by plain</h1>')
  })

  test('The refusal of a policy replaces the status and the body.', async () => {
    const response = await refused('/own')
    expect([response.status, response.headers.get('x-status')]).toEqual([503, null])
    expect(await response.text()).toBe(`wait ${response.headers.get('retry-after')}`)
    expect(response.headers.get('ratelimit')).toMatch(/^"own";r=0;t=/)
  })

  test('Of several policies that refuse, the one with the longest wait answers.', async () => {
    expect(await (await refused('/both')).text()).toBe('long')
  })

  test('A denied request gets the refusal of the configuration.', async () => {
    const response = await gateway.fetch('/', { ip: '192.0.2.66', ...accepting('*/*') })
    expect([response.status, response.headers.get('x-status')]).toEqual([403, '403'])
    expect(await response.json()).toEqual({ error: 'denied', by: 'abuse', seconds: null })
  })

  test('A request without its key gets the refusal of the policy.', async () => {
    const response = await gateway.fetch('/keyed')
    expect(response.status).toBe(403)
    expect(await response.text()).toBe('no keyed')
  })

  test('A banned client gets the refusal of the policy.', async () => {
    const response = await refused('/banned')
    expect(await response.text()).toBe(`banned ${response.headers.get('retry-after')}`)
    expect(response.headers.get('retry-after')).toBe('7200')
  })

  test('A refused HEAD request has the fields and no body.', async () => {
    const response = await refused('/plain', { method: 'HEAD', ...accepting(BROWSER) })
    expect([response.status, await response.text()]).toEqual([429, ''])
    expect(response.headers.get('content-type')).toBe('text/html;charset=utf-8')
  })

  test('A condition on the bot score reads what Cloudflare reports.', async () => {
    const cf = (score: number) => ({ cf: { botManagement: { score } } })
    expect((await refused('/bots', cf(29))).status).toBe(429)
    expect((await refused('/bots', cf(30))).status).toBe(200)
    expect((await refused('/bots', cf(0))).status).toBe(200)
    expect((await refused('/bots', { cf: {} })).status).toBe(200)
  })
})

describe('a refusal of forward-auth', () => {
  async function auth(
    variant: string,
    path: string,
    accept = '*/*',
    ip = `198.51.100.${++clients}`,
  ) {
    const ask = () =>
      gateway.fetch(`/_sluice/v1/auth${variant}${variant === '/envoy' ? path : ''}`, {
        headers: {
          'Sluice-Token': API_TOKEN,
          'X-Forwarded-Method': 'GET',
          'X-Forwarded-Uri': path,
          'X-Forwarded-Host': 'www.example.com',
          'X-Forwarded-For': ip,
          Accept: accept,
        },
      })
    await (await ask()).arrayBuffer()
    return ask()
  }

  test('Envoy gets the status of a refusal below 500 unchanged, and nginx a 403.', async () => {
    expect((await auth('/envoy', '/default')).status).toBe(429)
    expect((await auth('/nginx', '/default')).status).toBe(403)
  })

  test.each([
    ['', 503, 'text/plain;charset=utf-8', /^wait \d+$/],
    ['/envoy', 403, 'text/plain;charset=utf-8', /^wait \d+$/],
    ['/nginx', 403, null, /^$/],
  ])('At /auth%s it has the status %d and the type %s.', async (variant, status, type, body) => {
    const response = await auth(variant, '/own')
    expect(response.status).toBe(status)
    expect(response.headers.get('sluice-status')).toBe('503')
    expect(response.headers.get('content-type')).toBe(type)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.text()).toMatch(body)
  })

  test('The client of the proxy gets the page if it is a browser.', async () => {
    const response = await auth('', '/default', BROWSER)
    expect(response.headers.get('content-type')).toBe('text/html;charset=utf-8')
  })
})

test('The decision API answers with the decision, whatever the refusal says.', async () => {
  const { decide } = apiOf(gateway.fetch)
  const ask = { request: { url: 'https://www.example.com/own', ip: '198.51.100.250' } }
  await decide(ask)
  expect(await decide(ask, { headers: { Accept: BROWSER } })).toMatchObject({
    status: 429,
    body: { allowed: false, reason: 'limited' },
  })
})
