import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Echo } from '../../cli/dev/origin.ts'
import type { Stack } from '../../tools/stack.ts'
import { startLoopback } from '../support/loopback.ts'
import { raw } from '../support/raw-http.ts'
import { startStack } from '../support/stack.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({
    config: {
      deny: { name: 'no-get', method: 'GET', path: '/posts' },
      policies: [{ name: 'per-ip', limit: 1000, window: '1h' }],
    },
  })
})
afterAll(() => stack.stop())

/** Sends a request to workerd itself, whose entry Worker in Miniflare would remove the fields of an upgrade. */
const upgrade = (method: string, body: string) =>
  raw(
    stack.worker.directUrl,
    [
      `${method} /posts HTTP/1.1`,
      'Host: localhost',
      'CF-Connecting-IP: 203.0.113.7',
      'Connection: Upgrade',
      'Upgrade: WebSocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  )

test.each(['POST', 'PUT', 'DELETE', 'PATCH'])(
  'A %s that asks for a WebSocket reaches the origin as a %s with its body, not as a GET.',
  async (method) => {
    const answer = await upgrade(method, 'a body')
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    const echo = JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Echo
    expect(echo).toMatchObject({ method, url: '/posts', body: { bytes: 6 } })
    expect(echo.headers).not.toHaveProperty('upgrade')
  },
)

const plain = (method: string, ...lines: string[]) =>
  raw(
    stack.worker.directUrl,
    [
      `${method} /get HTTP/1.1`,
      'CF-Connecting-IP: 203.0.113.7',
      'Connection: close',
      ...lines,
    ].join('\r\n'),
  )

test.each(['a b', 'exa[mple', 'a:99999'])('The host "%s" is refused with 400.', async (host) => {
  const answer = await plain('GET', `Host: ${host}`, '', '')
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toContain('The Host of the request is invalid.')
})

test('Two fields "Host" are refused with 400.', async () => {
  expect(await plain('GET', 'Host: a', 'Host: b', '', '')).toMatch(/^HTTP\/1\.1 400 /)
})

test.each(['GET', 'HEAD'])(
  'A %s with a body in chunks, which workerd drops, is refused with 411, and one with a length is forwarded.',
  async (method) => {
    const chunked = await plain(
      method,
      'Host: a',
      'Transfer-Encoding: chunked',
      '',
      '6\r\na body\r\n0\r\n\r\n',
    )
    expect(chunked).toMatch(/^HTTP\/1\.1 411 /)
    const sized = await plain(method, 'Host: a', 'Content-Length: 6', '', 'a body')
    expect(sized).toMatch(/^HTTP\/1\.1 200 /)
    if (method === 'GET') expect(sized).toContain('"bytes": 6')
  },
)

describe('A body in chunks', () => {
  /** By path, the body that the origin has read to its end. */
  const received = new Map<string, string>()
  let origin: Awaited<ReturnType<typeof startLoopback>>
  let behind: Stack
  beforeAll(async () => {
    origin = await startLoopback(async (request, response) => {
      const url = request.url!
      if (url === '/fails') return void request.socket.destroy()
      if (url === '/early') response.end('early')
      let text = ''
      try {
        for await (const chunk of request) text += chunk
      } catch {
        return
      }
      received.set(url, text)
      if (url !== '/early') response.end('read')
    })
    behind = await startStack({ config: { policies: [] }, env: { ORIGIN: origin.url } })
  })
  afterAll(async () => {
    await behind.stop()
    await origin.close()
  })

  const send = (path: string, chunks: string) =>
    raw(
      behind.worker.directUrl,
      [
        `POST ${path} HTTP/1.1`,
        'Host: a',
        'CF-Connecting-IP: 203.0.113.8',
        'Connection: close',
        'Transfer-Encoding: chunked',
        '',
        chunks,
      ].join('\r\n'),
      false,
    )

  test.each([
    ['a size that is no number', 'zz\r\na body\r\n0\r\n\r\n'],
    ['a negative size', '-6\r\na body\r\n0\r\n\r\n'],
    ['a size with 0x', '0x6\r\na body\r\n0\r\n\r\n'],
    ['a size of 72 bits', 'ffffffffffffffffff\r\na body\r\n0\r\n\r\n'],
    ['lines without CR', '6\na body\n0\n\n'],
    ['a second chunk that is longer than its size', '6\r\na body\r\n6\r\na bodyXX0\r\n\r\n'],
  ])(
    'that has %s is refused with 400, and the origin never sees an end of it.',
    async (name, chunks) => {
      const path = `/${name.replaceAll(' ', '-')}`
      const answer = await send(path, chunks)
      expect(answer).toMatch(/^HTTP\/1\.1 400 /)
      expect(answer).toContain('Content-Type: application/problem+json')
      expect(answer).toContain('chunks are malformed')
      expect(received.has(path)).toBe(false)
    },
  )

  test('that is well-formed reaches the origin.', async () => {
    expect(await send('/good', '6;a=b\r\na body\r\n6\r\n, more\r\n0\r\nX: y\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 200 /,
    )
    expect(received.get('/good')).toBe('a body, more')
  })

  test('is answered 502 if the origin fails, and by the origin if that answers first.', async () => {
    expect(await send('/fails', '6\r\na body\r\n0\r\n\r\n')).toMatch(/^HTTP\/1\.1 502 /)
    expect(await send('/early', '6\r\na body\r\n0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })
})
