import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type BridgeStack, startBridgeStack } from './stack.ts'

let stack: BridgeStack
beforeAll(async () => {
  stack = await startBridgeStack({ allowHosts: ['x', 'host.docker.internal'] })
})
afterEach(async () => {
  // After each test the bridge still responds, and its replies match the requests.
  for (const text of ['one', 'two']) {
    expect(await stack.command('echo', text)).toEqual({ result: text })
  }
})
afterAll(() => stack?.stop())

/**
 * Sends bytes to the bridge and returns its response, up to the end of the connection or a pause of `pauseMs`:
 * 150 unless given.
 * Without a response it returns '' after `waitMs`: 5000 unless given.
 */
function raw(
  bytes: string | Buffer,
  options: { end?: boolean; waitMs?: number; pauseMs?: number } = {},
) {
  return new Promise<string>((resolve) => {
    const socket = connect(stack.bridge.port, '127.0.0.1')
    let answer = ''
    const done = () => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(options.waitMs ?? 5000, done)
    socket.on('data', (chunk) => {
      answer += chunk
      socket.setTimeout(options.pauseMs ?? 150)
    })
    socket.on('error', done)
    socket.on('close', done)
    socket.write(bytes)
    if (options.end) socket.end()
  })
}

const AUTH = 'Authorization: Bearer dev\r\n'
const post = (body: string, headers = '') =>
  `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`

describe('broken HTTP', () => {
  test.each([
    ['noise', Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256))],
    ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex')],
    ['Redis’s own protocol', '*1\r\n$4\r\nPING\r\n'],
    ['inline Redis', 'PING\r\n\r\n'],
    ['a header without end', `GET / HTTP/1.1\r\nX: ${'x'.repeat(100_000)}`],
    ['a thousand headers', `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(5000)}\r\n`],
    ['a URL of 100 KB', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    [
      'a length that is not a number',
      `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: x\r\n\r\n`,
    ],
    ['a negative length', `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: -5\r\n\r\n`],
    ['two lengths', post('["ping"]', 'Content-Length: 3\r\n')],
    ['a length and chunks', post('["ping"]', 'Transfer-Encoding: chunked\r\n')],
    [
      'broken chunks',
      `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
    ['a zero byte in the path', `GET /get/\0 HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`],
    [
      'a header of control characters',
      `GET /ping HTTP/1.1\r\nHost: x\r\nX: \x01\x02\r\n${AUTH}\r\n`,
    ],
  ])('Malformed input is refused: %s.', async (_, bytes) => {
    // For large inputs Node may close the connection before it sends the response.
    expect(await raw(bytes)).toMatch(bytes.length < 50_000 ? /^HTTP\/1\.1 4/ : /^(HTTP\/1\.1 4|$)/)
  })

  test('The bridge drops a request that ends early or stalls.', async () => {
    const begun = `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: 100\r\n\r\n["set"`
    expect(await raw(begun, { end: true })).toMatch(/^(HTTP\/1\.1 4|$)/)
    expect(await raw(begun, { waitMs: 150 })).toBe('')
    expect(await raw('GET /ping HT', { end: true })).toMatch(/^(HTTP\/1\.1 4|$)/)
  })

  test('The bridge still works after 500 short connections.', async () => {
    await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        raw(index % 2 === 0 ? '' : post('["ping"]').slice(0, index % 90), { waitMs: 50 }),
      ),
    )
  })
})

// A page whose host name resolves to 127.0.0.1 sends same-origin requests, and GET requests without an Origin header.
describe('DNS rebinding', () => {
  const rebound = 'rebind.evil.example:8079'
  const of = (line: string, host: string, body = '') =>
    raw(
      `${line} HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: same-origin\r\n${AUTH}Content-Length: ${body.length}\r\n\r\n${body}`,
    )

  test.each([
    ['GET /set/rebound/1?_token=dev', ''],
    ['GET /__stats?_token=dev', ''],
    ['POST /', '["flushall"]'],
    ['POST /pipeline', '[["set","rebound","1"]]'],
    ['GET /monitor?_token=dev', ''],
  ])('A rebound request is refused before a command runs: %s %s.', async (line, body) => {
    const answer = await of(line, rebound, body)
    expect(answer).toMatch(/^HTTP\/1\.1 403 /)
    expect(answer).toContain('--allow-host rebind.evil.example')
    expect(await stack.command('exists', 'rebound')).toEqual({ result: 0 })
  })

  test.each([
    'rebind.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example:8079',
    'evil.example#localhost',
    'evil@localhost',
    '127.evil.example',
    '0.0.0.0',
    '192.0.2.1:8079',
    '[::2]',
    'host.docker.internal.evil.example',
    '',
  ])('The Host header %j is refused.', async (host) => {
    expect(await of('GET /ping', host)).toMatch(/^HTTP\/1\.1 403 /)
  })

  test.each([
    '127.0.0.1',
    '127.1.2.3:8079',
    'localhost',
    'LocalHost:8079',
    'redis.localhost:8079',
    '[::1]:8079',
    'host.docker.internal:8079',
    'Host.Docker.Internal',
  ])('The Host header %j is accepted.', async (host) => {
    expect(await of('GET /ping', host)).toContain('{"result":"PONG"}')
  })
})

describe('unusual but valid HTTP', () => {
  test.each([
    [
      'chunks',
      `POST / HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n4\r\n["ec\r\n9\r\nho","hi"]\r\n0\r\n\r\n`,
    ],
    ['an absolute URL', `GET http://x/echo/hi HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`],
    ['HTTP/1.0', `GET /echo/hi HTTP/1.0\r\n${AUTH}\r\n`],
    [
      'the scheme BEARER in capital letters',
      'GET /echo/hi HTTP/1.1\r\nHost: x\r\nAUTHORIZATION: BEARER   dev\r\n\r\n',
    ],
    [
      'an Upgrade header',
      `GET /echo/hi HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${AUTH}\r\n`,
    ],
  ])('Valid HTTP is accepted: %s.', async (_, bytes) => {
    expect(await raw(bytes)).toContain('{"result":"hi"}')
  })

  test('A request with Expect: 100-continue gets status 100, and then its answer.', async () => {
    const headers = 'Expect: 100-continue\r\nConnection: close\r\n'
    const answer = await raw(post('["echo","hi"]', headers), { pauseMs: 5000 })
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
    expect(answer).toContain('{"result":"hi"}')
  })

  test('Pipelined HTTP requests are answered in order.', async () => {
    const requests = Array.from({ length: 50 }, (_, n) =>
      post(`["echo","n${n}"]`, n === 49 ? 'Connection: close\r\n' : ''),
    )
    const answer = await raw(requests.join(''), { pauseMs: 5000 })
    expect([...answer.matchAll(/"result":"(n\d+)"/g)].map(([, text]) => text)).toEqual(
      Array.from({ length: 50 }, (_, n) => `n${n}`),
    )
  })

  test.each(['//', '/./..', '/pipeline/', '/%2e%2e/%00', '/get//', '/?', '/??_token=dev', '/*'])(
    'The path %s is read as a command and refused with 400.',
    async (path) => {
      const answer = await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 400 /)
      expect(answer).toContain('{"error":"ERR ')
    },
  )
})

describe('a body', () => {
  test.each([
    ['of 1 MB of open brackets', '['.repeat(1_000_000)],
    ['nested 100,000 deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['with __proto__', '{"__proto__":["ping"],"length":1,"0":"ping"}'],
    ['that is a number', '1e999'],
    ['that is not UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0xfe])],
    ['of 500,000 empty commands', `[${'[],'.repeat(499_999)}[]]`],
  ])('A body %s is refused with 400.', async (_, body) => {
    for (const path of ['/', '/pipeline', '/multi-exec']) {
      expect((await stack.http(path, { method: 'POST', body })).status).toBe(400)
    }
  })

  test('A pipeline of 100,000 commands runs.', async () => {
    const body = JSON.stringify(new Array(100_000).fill(['ping']))
    const { json } = await stack.http('/pipeline', { method: 'POST', body })
    expect((json as unknown[]).length).toBe(100_000)
  })

  test('A chunked body above 10 MB is refused.', async () => {
    const chunk = `${(1_000_000).toString(16)}\r\n${'x'.repeat(1_000_000)}\r\n`
    const head = `POST /set/k HTTP/1.1\r\nHost: x\r\n${AUTH}Transfer-Encoding: chunked\r\n\r\n`
    const answer = await raw(`${head}${chunk.repeat(11)}0\r\n\r\n`)
    expect(answer).toContain('ERR max request size exceeded')
  })

  test('A body that its client does not complete runs no command.', async () => {
    const begun = `POST /set/half HTTP/1.1\r\nHost: x\r\n${AUTH}Content-Length: 100\r\n\r\nhalf`
    await raw(begun, { end: true })
    expect(await stack.command('exists', 'half')).toEqual({ result: 0 })
  })
})

test('Responses of 100 MB in total that no client reads use less than 800 MB of memory.', async () => {
  await stack.command('eval', "redis.call('SET', KEYS[1], string.rep('x', 20e6))", 1, 'huge')
  const before = process.memoryUsage().rss
  await Promise.all(
    Array.from({ length: 5 }, () =>
      raw(`GET /get/huge HTTP/1.1\r\nHost: x\r\n${AUTH}\r\n`, { waitMs: 10 }),
    ),
  )
  expect(process.memoryUsage().rss - before).toBeLessThan(800e6)
})
