/** Servers in a process in which `serve` of `@hono/node-server` has replaced `Request` and `Response`. */
import { describe, expect, test } from 'vitest'
import { configOf, servers, useDatabase, useLightClasses } from '../../../support/node-servers.ts'

useDatabase()
useLightClasses()

const Native = globalThis.Response
const policy = { name: 'per-ip', limit: 1, window: '1h', algorithm: 'fixed-window' } as const
const cors = { origins: ['https://page.example'] }
const html = { headers: { accept: 'text/html', origin: 'https://page.example' } }

describe.each(servers)('a limiter in %s', (_name, start) => {
  test('Both responses have their fields, and a refusal is a problem document, or a page for a browser.', async () => {
    expect(globalThis.Response).not.toBe(Native)
    const url = await start(configOf({ policies: [policy], cors }))
    const first = await fetch(url)
    expect([first.status, await first.text()]).toEqual([200, 'ok'])
    expect(first.headers.get('ratelimit-policy')).toBe('"per-ip";q=1;w=3600')
    expect(first.headers.get('ratelimit')).toMatch(/^"per-ip";r=0;t=\d+$/)
    const refused = await fetch(url)
    const page = await fetch(url, html)
    for (const { status, headers } of [refused, page]) {
      expect(status).toBe(429)
      expect(headers.get('ratelimit-policy')).toBe('"per-ip";q=1;w=3600')
      expect(headers.get('ratelimit')).toMatch(/^"per-ip";r=0;t=\d+$/)
      expect(headers.get('retry-after')).toMatch(/^\d+$/)
      expect(headers.get('cache-control')).toBe('no-store')
    }
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['per-ip'] })
    expect(page.headers.get('access-control-allow-origin')).toBe('https://page.example')
    expect(page.headers.get('content-type')).toBe('text/html;charset=utf-8')
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'nonce-/)
    expect(await page.text()).toContain('<h1>Too many requests</h1>')
  })

  test('A refusal has no field of the refusal of another client.', async () => {
    const deny = [{ path: '/denied' }]
    const url = await start(configOf({ policies: [policy], deny, cors }))
    await fetch(url)
    const refused = await fetch(url, { headers: { origin: 'https://page.example' } })
    expect(refused.headers.has('retry-after')).toBe(true)
    const denied = await fetch(`${url}/denied`)
    expect(denied.status).toBe(403)
    const own = ['retry-after', 'ratelimit', 'ratelimit-policy', 'access-control-allow-origin']
    expect(own.filter((name) => denied.headers.has(name))).toEqual([])
  })
})
