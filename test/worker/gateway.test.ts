/** The origin of a Worker, as only workerd can show it: the zone, a Worker that is its own origin, and a Worker that does not start. */
import { freePort } from 'sluice-upstash-bridge'
import { expect, test } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { startWorker, type WorkerOptions } from '../../tools/worker.ts'
import { raw, request } from '../support/raw-http.ts'

const anyConfig = new URL('../../.cache/workers/any-config', import.meta.url).pathname

/** Runs a Worker without a database. */
const start = (config: object, ORIGIN: string, more: WorkerOptions = {}) =>
  startWorker(anyConfig, { env: { CONFIG: JSON.stringify(config), ORIGIN }, ...more })

test("With origin 'zone' a request is forwarded unchanged, except for CDN-Loop.", async () => {
  let forwarded: Request | undefined
  const worker = await start({ policies: [] }, 'zone', {
    outbound(request) {
      forwarded = request
      return new Response('from the zone')
    },
  })
  const send = (target: string, loop: string) =>
    raw(
      worker.url,
      `POST ${target} HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-For: 192.0.2.1\r\nX-A: 1\r\nCDN-Loop: ${loop}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
    )
  try {
    expect(await send('//a/%2e?b=', 'cloudflare; loops=1')).toMatch(/^HTTP\/1.1 200 /)
    const { method, url, headers } = forwarded!
    expect([method, url, await forwarded!.text()]).toEqual([
      'POST',
      'http://www.example.com//a/?b=',
      'hi',
    ])
    expect([headers.get('x-a'), headers.get('x-forwarded-for')]).toEqual(['1', '192.0.2.1'])
    expect(headers.get('cdn-loop')).toBe('cloudflare; loops=1, sluice')
    expect(headers.has('x-forwarded-host')).toBe(false)
    expect(await send('/looped', 'sluice, sluice, sluice')).toMatch(/^HTTP\/1.1 508 /)
    expect(forwarded!.url).not.toContain('looped')
  } finally {
    await worker.stop()
  }
})

test.each([
  ['without a policy', []],
  ['with a policy', [{ name: 'all', limit: 100, window: '1d', onStoreError: 'allow' }]],
] satisfies [string, ConfigOptions['policies']][])(
  'A Worker that is its own origin, %s, answers 508 at once and logs one line.',
  async (_, policies) => {
    const port = await freePort()
    const worker = await start({ policies, unconfigured: 'local' }, `http://127.0.0.1:${port}`, {
      port,
    })
    try {
      const begun = performance.now()
      for (let i = 0; i < 2; i++) expect((await fetch(`${worker.url}/x`)).status).toBe(508)
      expect(performance.now() - begun).toBeLessThan(5000)
      const events = worker.logs.map((line) => JSON.parse(line).event)
      expect(events.filter((event) => event === 'loop')).toHaveLength(1)
    } finally {
      await worker.stop()
    }
  },
)

test("With origin 'zone' the origin gets the path that policies have read, and no request with a Host that is none.", async () => {
  const received: string[] = []
  const worker = await start({ policies: [], deny: { path: '/admin/*' } }, 'zone', {
    origin(request, response) {
      received.push(request.url!)
      response.end()
    },
  })
  const send = async (target: string, host = 'www.example.com') => {
    const answer = await raw(worker.directUrl, request(target, `Host: ${host}`))
    return Number(answer.split(' ')[1])
  }
  try {
    for (const target of ['/admin/x', '/admin/%2e%2e/x', '/admin/..\\x']) {
      expect([target, await send(target)]).toEqual([target, 403])
    }
    expect(received).toEqual([])
    for (const target of ['/x/%2e%2e/y', '/x/..\\y', '/x\\y']) {
      expect([target, await send(target)]).toEqual([target, 200])
    }
    expect(received).toEqual(['/y', '/y', '/x/y'])
    for (const host of ['a/b', 'a#', 'a?', 'a?b', 'a\\b', 'a@b', 'a%2fb', 'a;b', 'a b', 'a, b']) {
      expect([host, await send('/x', host)]).toEqual([host, 400])
    }
    for (const host of ['a.example', 'A.example.:8080', 'a_b.example', 'a.example:']) {
      expect([host, await send('/x', host)]).toEqual([host, 200])
    }
  } finally {
    await worker.stop()
  }
})

test('A Worker reads live policies from the KV binding.', async () => {
  const live = { from: 'kv:RULES', key: 'rules', every: '100ms' }
  const worker = await start({ policies: [], live, unconfigured: 'local' }, 'http://127.0.0.1:1', {
    kv: ['RULES'],
  })
  const statusOf = async () => (await fetch(`${worker.url}/denied`)).status
  try {
    expect(await statusOf()).toBe(502) // the origin is down
    const namespace = await worker.kv('RULES')
    await namespace.put('rules', JSON.stringify({ deny: { path: '/denied' } }))
    await expect.poll(statusOf).toBe(403)
  } finally {
    await worker.stop()
  }
})

test('A Worker with an invalid configuration refuses to start and names every problem.', async () => {
  const worker = await start({ policies: [{ name: 'a' }] }, 'zone')
  const response = await fetch(worker.url)
  expect(response.status).toBe(500)
  expect(await response.text()).toMatch(
    /policies\[0\]\.limit: expected .*[\s\S]*policies\[0\]\.window: expected/,
  )
  await worker.stop()
})
