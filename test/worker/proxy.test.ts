import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import WebSocket from 'ws'
import type { Echo } from '../../cli/dev/origin.ts'
import type { Stack } from '../../tools/stack.ts'
import { raw, request } from '../support/raw-http.ts'
import { residentBytes } from '../support/resident-bytes.ts'
import { startStack } from '../support/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config: { policies: [{ name: 'a', limit: 10_000, window: '1h' }] } })
})
afterAll(() => stack.stop())

const echo = async (...args: Parameters<Stack['fetch']>) =>
  (await (await stack.fetch(...args)).json()) as Echo

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
  'A %s request reaches the origin with its body.',
  async (method) => {
    const body = method === 'GET' ? null : 'some body'
    const received = await echo('/path?query=1', { method, body })
    expect(received).toMatchObject({ method, url: '/path?query=1', body: { text: body ?? '' } })
  },
)

test('A GET request with a body reaches the origin.', async () => {
  const text = await raw(
    stack.url,
    'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
  )
  expect(text).toMatch(/^HTTP\/1.1 200/)
  expect(text).toContain('"text": "hi"')
  expect(
    await raw(
      stack.url,
      'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    ),
  ).toMatch(/^HTTP\/1.1 200/)
})

test('The response to HEAD has the RateLimit fields and no body.', async () => {
  const response = await stack.fetch('/', { method: 'HEAD' })
  expect(response.headers.get('ratelimit')).toMatch(/^"a";r=\d+;t=\d+$/)
  expect(await response.text()).toBe('')
})

test.each([
  '/a%2Fb/%6c?x=%20&y=a+b',
  '/a//b',
  '//evil.example/x',
  '/?',
  '/a?b?c#',
  '/%E0%A4%A',
  '/@evil.example',
  '/http://evil.example/',
])('The target %s reaches the origin unchanged.', async (path) => {
  expect((await rawEcho(path)).url).toBe(path.replace(/#$/, ''))
})

async function rawEcho(target: string): Promise<Echo> {
  const text = await raw(
    stack.url,
    `GET ${target} HTTP/1.1\r\nHost: client.example\r\nCF-Connecting-IP: 203.0.113.7\r\nConnection: close\r\n\r\n`,
  )
  return JSON.parse(text.slice(text.indexOf('{\n'), text.lastIndexOf('}') + 1))
}

test('A compressed response reaches the client compressed.', async () => {
  const response = await stack.fetch('/gzip/any')
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(await response.text()).toBe('sluice '.repeat(1000))
})

test.skipIf(process.platform !== 'linux')(
  'An upload and a download of 50 MB need constant memory.',
  async () => {
    const size = 50 * 1024 * 1024
    const chunk = Buffer.alloc(1024 * 1024, 'sluice')
    const hash = createHash('sha256')
    async function* chunks() {
      for (let sent = 0; sent < size; sent += chunk.length) {
        hash.update(chunk)
        yield chunk
      }
    }
    const before = await residentBytes()
    const upload = await stack.fetch('/upload', {
      method: 'POST',
      body: Readable.toWeb(Readable.from(chunks())) as never,
      duplex: 'half',
    } as never)
    const uploaded = (await upload.json()) as Echo
    expect(uploaded.body).toMatchObject({ bytes: size, sha256: hash.digest('hex') })

    const download = await stack.fetch(`/stream/${size}`)
    expect(download.headers.get('content-length')).toBe(String(size))
    let received = 0
    for await (const part of download.body!) received += part.length
    expect(received).toBe(size)
    expect((await residentBytes()) - before).toBeLessThan(size / 2)
  },
)

test('A request body keeps its Content-Length.', async () => {
  expect(
    (await echo('/', { method: 'POST', body: 'x'.repeat(1000) })).headers['content-length'],
  ).toBe('1000')
})

test('The response starts before the body of the origin has ended.', async () => {
  const response = await stack.fetch('/stream/30000000')
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  expect(value!.length).toBeGreaterThan(0)
  await reader.cancel()
})

test('A WebSocket connection reaches the origin and back.', async () => {
  const socket = new WebSocket(`${stack.url.replace('http', 'ws')}/socket`, {
    headers: { 'CF-Connecting-IP': '203.0.113.7' },
  })
  const answer = await new Promise<string>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (data) => resolve(String(data)))
    socket.on('open', () => socket.send('hello'))
  })
  socket.close()
  expect(answer).toBe('hello')
})

test('An invalid status of the origin becomes a 502.', async () => {
  expect((await stack.fetch('/status/600')).status).toBe(502)
})

test('A body that the origin breaks off fails for the client.', async () => {
  const response = await stack.fetch('/cut/any')
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
})

test.each([8_000, 1_000_000])(
  'A response with %d bytes of header fields reaches the client or becomes a 502.',
  async (bytes) => {
    // Sent as raw bytes, because fetch limits the size of header fields.
    const text = await raw(stack.url, request(`/headers/${bytes}`, 'Host: a'))
    expect(text).toMatch(
      bytes < 10_000 ? /^HTTP\/1.1 200 [\s\S]*long headers/ : /^HTTP\/1.1 (200|502) /,
    )
    expect((await stack.fetch('/')).status).toBe(200)
  },
)
