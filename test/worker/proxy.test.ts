import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import WebSocket from 'ws'
import type { Echo } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { raw, request } from '../support/raw-http.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config: { policies: [{ name: 'a', limit: 10_000, window: '1h' }] } })
})
afterAll(() => stack.stop())

const echo = async (...args: Parameters<Stack['fetch']>) =>
  (await (await stack.fetch(...args)).json()) as Echo

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
  '%s goes through with its body',
  async (method) => {
    const body = method === 'GET' ? null : 'some body'
    const said = await echo('/path?query=1', { method, body })
    expect(said).toMatchObject({ method, url: '/path?query=1', body: { text: body ?? '' } })
  },
)

test('GET may have a body, as clients do send', async () => {
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

test('HEAD has the fields and no body', async () => {
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
])('%s reaches the origin as it was sent', async (path) => {
  expect((await rawEcho(path)).url).toBe(path.replace(/#$/, ''))
})

async function rawEcho(target: string): Promise<Echo> {
  const text = await raw(
    stack.url,
    `GET ${target} HTTP/1.1\r\nHost: client.example\r\nCF-Connecting-IP: 203.0.113.7\r\nConnection: close\r\n\r\n`,
  )
  return JSON.parse(text.slice(text.indexOf('{\n'), text.lastIndexOf('}') + 1))
}

test('the origin is told its own host, and whom the client asked and who that is', async () => {
  const said = await echo('/', {
    headers: {
      'X-Forwarded-For': '6.6.6.6',
      'X-Forwarded-Host': 'evil',
      Forwarded: 'for=6.6.6.6',
    },
  })
  expect(said.headers).toMatchObject({
    host: new URL(stack.origin.url).host,
    'x-forwarded-host': new URL(stack.url).host,
    'x-forwarded-proto': 'http',
    'x-forwarded-for': '203.0.113.7',
  })
  expect(said.headers).not.toHaveProperty('forwarded')
  expect((await rawEcho('/')).headers['x-forwarded-host']).toBe('client.example')
})

test('fields between neighbours stay between them', async () => {
  const text = await raw(
    stack.url,
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n' +
      'Proxy-Authorization: Basic eA==\r\nX-Public: 1\r\n\r\n',
  )
  expect(text).toContain('"x-public": "1"')
  expect(text).not.toMatch(/"(x-private|keep-alive|te|proxy-authorization)"/)
})

test('no field of the client names another path or address than the one that was limited', async () => {
  const said = await echo('/', {
    headers: { 'X-Original-URL': '/login', 'X-Rewrite-URL': '/login', 'X-Real-IP': '6.6.6.6' },
  })
  expect(Object.keys(said.headers).join()).not.toMatch(/x-original-url|x-rewrite-url|x-real-ip/)
})

test.each([301, 302, 303, 307, 308])(
  'a %d passes through untouched, cookies and all',
  async (status) => {
    const response = await stack.fetch(`/redirect/${status}`)
    expect(response.status).toBe(status)
    expect(response.headers.get('location')).toBe('/elsewhere')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  },
)

test.each([204, 304, 404, 418, 500, 503])('a %d of the origin is the answer', async (status) => {
  expect((await stack.fetch(`/status/${status}`)).status).toBe(status)
})

test('a compressed answer arrives compressed', async () => {
  const response = await stack.fetch('/gzip/any')
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(await response.text()).toBe('sluice '.repeat(1000))
})

test.skipIf(process.platform !== 'linux')(
  '50 MB go up and come down in constant memory',
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
    const said = (await upload.json()) as Echo
    expect(said.body).toMatchObject({ bytes: size, sha256: hash.digest('hex') })

    const download = await stack.fetch(`/stream/${size}`)
    expect(download.headers.get('content-length')).toBe(String(size))
    let received = 0
    for await (const part of download.body!) received += part.length
    expect(received).toBe(size)
    expect((await residentBytes()) - before).toBeLessThan(size / 2)
  },
)

/** Resident memory of the workerd that runs our Worker. */
async function residentBytes(): Promise<number> {
  const { execFileSync } = await import('node:child_process')
  const children = execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(process.pid)], {
    encoding: 'utf8',
  })
  const pid = /(\d+) workerd/.exec(children)![1]
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024
}

test('a body with a length keeps it', async () => {
  expect(
    (await echo('/', { method: 'POST', body: 'x'.repeat(1000) })).headers['content-length'],
  ).toBe('1000')
})

test('the answer starts before the request has ended', async () => {
  const response = await stack.fetch('/stream/30000000')
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  expect(value!.length).toBeGreaterThan(0)
  await reader.cancel()
})

test('a WebSocket is upgraded and echoes', async () => {
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

test('a status that no response can have is a 502', async () => {
  expect((await stack.fetch('/status/600')).status).toBe(502)
})

test('an origin that breaks off within the body breaks the body, and is not taken for whole', async () => {
  const response = await stack.fetch('/cut/any')
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
})

test.each([8_000, 1_000_000])(
  '%d bytes of header fields are the answer, or a 502',
  async (bytes) => {
    // As raw bytes: a client of its own limits would refuse them.
    const text = await raw(stack.url, request(`/headers/${bytes}`, 'Host: a'))
    expect(text).toMatch(
      bytes < 10_000 ? /^HTTP\/1.1 200 [\s\S]*long headers/ : /^HTTP\/1.1 (200|502) /,
    )
    expect((await stack.fetch('/')).status).toBe(200)
  },
)

test('what was charged stays charged when the origin fails', async () => {
  const remaining = async (path: string) =>
    Number(
      /;r=(\d+)/.exec(
        (await stack.fetch(path, { ip: '203.0.113.99' })).headers.get('ratelimit')!,
      )![1],
    )
  const before = await remaining('/')
  expect(await remaining('/reset/any')).toBe(before - 1)
  expect(await remaining('/')).toBe(before - 2)
})

test('an origin that breaks off is a 502 problem', async () => {
  const response = await stack.fetch('/reset/any')
  expect(response.status).toBe(502)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.has('ratelimit')).toBe(true)
  expect(await response.json()).toMatchObject({ title: 'Bad Gateway', status: 502 })
})
