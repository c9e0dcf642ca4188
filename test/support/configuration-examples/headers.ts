import { expect } from 'vitest'
import { ok, type Scenarios, withHeaders } from './client.ts'

/** Scenarios for header sets and CORS. */
export const headers: Scenarios = {
  async 'two-sets'({ send, statuses }) {
    const { field } = await send('/')
    expect(field('ratelimit-policy')).toBe('"minute";q=10;w=60, "day";q=1000;w=86400')
    expect(field('ratelimit')).toBe('"minute";r=9;t=60')
    expect(field('x-ratelimit-limit')).toBe('10')
    expect(field('x-ratelimit-remaining')).toBe('9')
    const wait = Number(field('x-ratelimit-reset')) - Date.now() / 1000
    expect(Math.abs(wait - 60)).toBeLessThan(5)
    expect(await statuses(10, '/')).toEqual([...ok(9), 429])
    expect((await send('/')).field('x-ratelimit-remaining')).toBe('0')
  },

  async cors({ send, statuses }) {
    const page = (origin: string) => withHeaders({ origin })
    expect(await statuses(10, '/', page('https://app.example.com'))).toEqual(ok(10))
    const refused = await send('/', page('https://app.example.com'))
    expect(refused.status).toBe(429)
    const allowFields = ['origin', 'credentials'].map((name) => `access-control-allow-${name}`)
    expect(allowFields.map(refused.field)).toEqual(['https://app.example.com', 'true'])
    const exposed = 'RateLimit-Policy, RateLimit, Retry-After'
    expect(refused.field('access-control-expose-headers')).toBe(exposed)
    expect(refused.field('vary')).toMatch(/\borigin\b/i)
    const other = await send('/', page('https://elsewhere.example'))
    expect([other.status, ...allowFields.map(other.field)]).toEqual([429, undefined, undefined])

    const preflight = { 'access-control-request-method': 'POST', origin: 'https://app.example.com' }
    expect((await send('OPTIONS /', { headers: preflight })).status).toBe(200)
    expect((await send('OPTIONS /')).status).toBe(429)
  },
}
