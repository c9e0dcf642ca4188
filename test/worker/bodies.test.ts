/** Policies by the body, through workerd to a real origin: what is counted, and which bytes arrive. */
import { once } from 'node:events'
import { request as http } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { Stack } from '../../tools/stack.ts'
import { API_TOKEN } from '../support/api-stack.ts'
import { raw } from '../support/raw-http.ts'
import { startScriptedOrigin } from '../support/scripted-origin.ts'
import { startStack } from '../support/stack.ts'

const quota = { window: '1h', algorithm: 'fixed-window' } as const
const config: ConfigOptions = {
  policies: [
    {
      ...quota,
      name: 'tools',
      limit: 3,
      match: { path: '/mcp', body: { method: 'tools/call' } },
      key: ['ip', 'body:params.name'],
      onMissingKey: 'refuse',
    },
    { ...quota, name: 'bytes', limit: 1_000_000, match: { path: '/bytes' }, key: 'body:a' },
  ],
}

let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
let stack: Stack
/** The bodies and headers that the origin has received, by URL. */
const received = new Map<string, { body: Buffer; headers: Record<string, unknown> }>()

beforeAll(async () => {
  origin = await startScriptedOrigin(async (url, response, incoming) => {
    const body = await buffer(incoming).catch(() => undefined)
    if (body) received.set(url.pathname + url.search, { body, headers: incoming.headers })
    response.end('ok')
  })
  stack = await startStack({
    config,
    bodies: { timeout: '1s' },
    env: { ORIGIN: origin.url, SLUICE_API_TOKEN: API_TOKEN },
  })
})
afterAll(async () => {
  await stack?.stop()
  await origin?.close()
})

const call = (name: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } })
const json = { 'content-type': 'application/json' }
async function post(path: string, body: unknown, ip = '203.0.113.7', headers: object = json) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await stack.fetch(path, {
    method: 'POST',
    body: text,
    ip,
    headers: { ...headers },
  })
  await response.arrayBuffer()
  return response
}

test('A body that cannot be read is refused, as onMissingKey says, also if the client names another tool.', async () => {
  const ip = '203.0.113.9'
  const twice = '{"method":"initialize","method":"tools/call","params":{"name":"search"}}'
  for (const text of [twice, '{', JSON.stringify({ ...call('x'), pad: 'x'.repeat(65_536) })]) {
    expect((await post('/mcp', text, ip)).status).toBe(403)
  }
  expect((await post('/mcp', call('x'), ip, { 'content-type': 'text/plain' })).status).toBe(403)
})

let sends = 0
/** Sends a body in chunks, and returns what the origin received. */
async function through(chunks: Uint8Array[], headers: Record<string, string>) {
  const path = `/bytes?${++sends}`
  const sent = http(stack.url + path, { method: 'POST', headers: { ...json, ...headers } })
  const answered = once(sent, 'response')
  for (const chunk of chunks) sent.write(chunk)
  sent.end()
  const [response] = await answered
  await buffer(response)
  return { status: response.statusCode, ...received.get(path)! }
}

test('Any body arrives at the origin byte for byte, with its length or in chunks.', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json().map((text) => new TextEncoder().encode(text)),
    fc
      .constantFrom(0, 1, 65_535, 65_536, 65_537, 200_000)
      .map((size) => new Uint8Array(size).fill(32)),
  )
  await fc.assert(
    fc.asyncProperty(bytes, fc.nat(), fc.boolean(), async (body, at, hasLength) => {
      const cut = body.length === 0 ? 0 : at % body.length
      const headers = hasLength ? { 'content-length': `${body.length}` } : {}
      const got = await through(
        [body.subarray(0, cut), body.subarray(cut)].filter(({ length }) => length > 0),
        headers as never,
      )
      expect(got.status).toBe(200)
      expect(got.body.equals(body)).toBe(true)
      if (hasLength) expect(got.headers['content-length']).toBe(`${body.length}`)
    }),
    { numRuns: 60 },
  )
})

test('A body of 10 MB passes unchanged, and is read no further than 64 KiB by the limiter.', async () => {
  const body = Buffer.alloc(10_000_000, '{"a":"sluice"}')
  const got = await through([body], { 'content-length': `${body.length}` })
  expect(got.body.equals(body)).toBe(true)
  const chunked = await through([body], {})
  expect(chunked.body.equals(body)).toBe(true)
})

test('A client that sends slowly is counted, and its body arrives whole.', async () => {
  const sent = http(`${stack.url}/bytes?slow`, { method: 'POST', headers: json })
  const answered = once(sent, 'response')
  sent.write('{"a":')
  for (let n = 0; n < 15; n++) {
    await sleep(100)
    sent.write(' ')
  }
  sent.end('1}')
  const [response] = await answered
  expect(response.statusCode).toBe(200)
  expect(response.headers.ratelimit).toContain('"bytes"')
  await buffer(response)
  expect(String(received.get('/bytes?slow')!.body).replaceAll(' ', '')).toBe('{"a":1}')
})

test('A client that hangs up in the middle, or sends another length, harms no other request.', async () => {
  const { host } = new URL(stack.url)
  const head = (length: string) =>
    `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${length}\r\nConnection: close\r\n\r\n`
  await raw(stack.url, `${head('Content-Length: 1000')}{"method":`)
  await raw(stack.url, `${head('Transfer-Encoding: chunked')}5\r\n{"met\r\nzz\r\n`)
  await raw(stack.url, `${head('Content-Length: 2')}{}{"method":"tools/call"}`, false)
  await raw(stack.url, `${head('Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`, false)
  expect((await post('/mcp', call('after'), '203.0.113.12')).status).toBe(200)
})

test('The decision API reads the body of a description. Without it, and in forward-auth, a body is unreadable.', async () => {
  const decide = async (more: object) => {
    const response = await stack.fetch('/_sluice/v1/decide', {
      method: 'POST',
      headers: { authorization: `Bearer ${API_TOKEN}`, ...json },
      body: JSON.stringify({
        request: {
          method: 'POST',
          url: 'https://a.test/mcp',
          ip: '203.0.113.13',
          headers: json,
          ...more,
        },
        mode: 'peek',
      }),
    })
    return (await response.json()) as {
      reason: string
      denied?: object
      limits: { policy: string }[]
    }
  }
  expect(await decide({ body: JSON.stringify(call('search')) })).toMatchObject({
    allowed: true,
    limits: [{ policy: 'tools' }],
  })
  expect(await decide({ body: '{"method":"ping"}' })).toMatchObject({ reason: 'no-policy' })
  expect(await decide({ method: 'GET' })).toMatchObject({ reason: 'no-policy' })
  expect(await decide({})).toMatchObject({
    denied: { by: 'tools', unreadable: 'body:params.name' },
  })
  const auth = await stack.fetch('/_sluice/v1/auth', {
    headers: {
      'sluice-token': API_TOKEN,
      'x-forwarded-method': 'POST',
      'x-forwarded-uri': '/mcp',
      'x-forwarded-host': 'a.test',
      'x-forwarded-for': '203.0.113.13',
    },
  })
  expect(auth.status).toBe(403)
})
