import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Echo } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { raw } from '../support/raw-http.ts'

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
