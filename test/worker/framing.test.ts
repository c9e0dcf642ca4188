import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Echo } from '../../cli/dev/origin.ts'
import type { Stack } from '../../dev/stack.ts'
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
