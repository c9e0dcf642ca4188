/** T10 of SECURITY.md, CDN-Loop (RFC 8586): a Worker that is its own origin must not call itself endlessly. */
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Echo } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { startWorker, type WorkerOptions } from '../../dev/worker.ts'
import type { PolicyOptions } from '../../src/config/options.ts'
import { raw, request } from '../support/raw-http.ts'

const anyConfig = new URL('../../.cache/workers/any-config', import.meta.url).pathname
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config: { policies: [] } })
})
afterAll(() => stack.stop())

/** Starts another Worker on the same store. */
const run = (origin: string, policies: PolicyOptions[] = [], more: WorkerOptions = {}) =>
  startWorker(anyConfig, {
    env: {
      CONFIG: JSON.stringify({ deadline: '10s', policies }),
      ORIGIN: origin,
      UPSTASH_REDIS_REST_URL: stack.bridge.url,
      UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
    },
    ...more,
  })
const echoed = async (url: string, field?: string) => {
  const response = await fetch(url, field === undefined ? {} : { headers: { 'CDN-Loop': field } })
  return { status: response.status, field: ((await response.json()) as Echo).headers?.['cdn-loop'] }
}

describe('a Worker that is its own origin', () => {
  const policy: PolicyOptions = { name: 'all', limit: 100, window: '1d' }
  test.each([
    ['without a policy', []],
    ['with a policy', [policy]],
    ['with a policy that is checked in parallel', [{ ...policy, check: 'parallel' as const }]],
  ])(
    'A Worker that is its own origin, %s, answers 508 at once and logs one line.',
    async (_, policies) => {
      const port = await freePort()
      const worker = await run(`http://127.0.0.1:${port}`, policies, { port })
      try {
        const start = performance.now()
        for (let i = 0; i < 2; i++) {
          const response = await fetch(`${worker.url}/x`)
          expect(response.status).toBe(508)
          expect(response.headers.get('content-type')).toBe('application/problem+json')
          expect(response.headers.get('cache-control')).toBe('no-store')
          expect(await response.json()).toMatchObject({
            title: 'Loop Detected',
            detail: expect.stringMatching(
              /leads back to this Worker.* set origin in sluice\.config/i,
            ),
          })
        }
        expect(performance.now() - start).toBeLessThan(5000)
        const events = worker.logs.map((line) => JSON.parse(line).event)
        expect(events).toEqual(['loop'])
      } finally {
        await worker.stop()
      }
    },
  )
})

test('A chain of three Workers reaches the origin, and a chain of four answers 508.', async () => {
  const third = stack // in front of the origin
  const second = await run(third.url)
  const first = await run(second.url)
  const zeroth = await run(first.url)
  try {
    expect(await echoed(third.url)).toEqual({ status: 200, field: 'sluice' })
    expect(await echoed(first.url)).toEqual({ status: 200, field: 'sluice, sluice, sluice' })
    expect(await echoed(zeroth.url)).toEqual({ status: 508 })
  } finally {
    await Promise.all([zeroth.stop(), first.stop(), second.stop()])
  }
})

test.each([
  ['cloudflare; loops=1', 'cloudflare; loops=1, sluice'],
  ['', 'sluice'],
  ['sluice-other, x.sluice, "sluice"', 'sluice-other, x.sluice, "sluice", sluice'],
  ['a, sluice ; x=1, SLUICE', 'a, sluice ; x=1, SLUICE, sluice'],
])(
  'The CDN-Loop field "%s" reaches the origin with one more entry: "%s".',
  async (field, expected) => {
    expect(await echoed(stack.url, field)).toEqual({ status: 200, field: expected })
  },
)

test('A client that names sluice three times in CDN-Loop gets a 508, and other requests are unaffected.', async () => {
  expect(await echoed(stack.url, 'sluice,sluice;a=1 , Sluice')).toMatchObject({ status: 508 })
  expect(await echoed(stack.url)).toMatchObject({ status: 200 })
})

test('A client cannot remove the CDN-Loop field by naming it in Connection.', async () => {
  const answer = await raw(
    stack.worker.directUrl,
    'GET / HTTP/1.1\r\nHost: a\r\nCDN-Loop: cloudflare; loops=1\r\nConnection: close, CDN-Loop\r\n\r\n',
  )
  expect(answer).toContain('"cdn-loop": "cloudflare; loops=1, sluice"')
})

test('The origin of the zone gets the CDN-Loop field, too.', async () => {
  const fields: (string | null)[] = []
  const worker = await run('zone', [], {
    outbound(sent: Request) {
      fields.push(sent.headers.get('cdn-loop'))
      return new Response('from the zone')
    },
  })
  try {
    const send = (field: string) =>
      raw(worker.url, request('/', 'Host: www.example.com', `CDN-Loop: ${field}`))
    expect(await send('cloudflare; loops=1')).toMatch(/^HTTP\/1.1 200 /)
    expect(await send('sluice, sluice, sluice')).toMatch(/^HTTP\/1.1 508 /)
    expect(fields).toEqual(['cloudflare; loops=1, sluice'])
  } finally {
    await worker.stop()
  }
})
