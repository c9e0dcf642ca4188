import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort, type RunningRedis, startBridge, startRedis } from '../src/index.ts'
import { type BridgeStack, startBridgeStack } from './stack.ts'
import { until } from './until.ts'

const file = (name: string) => fileURLToPath(new URL(`./tls/${name}.pem`, import.meta.url))
const [cert, key] = [readFileSync(file('cert')), readFileSync(file('key'))]
const stacks: BridgeStack[] = []

async function start(...options: Parameters<typeof startBridgeStack>) {
  const stack = await startBridgeStack(...options)
  stacks.push(stack)
  return stack
}
// At the end, since most of these tests wait and so run at the same time.
afterAll(() => Promise.all(stacks.map((stack) => stack.stop())))

const post = (stack: BridgeStack, path: string, body: unknown) =>
  stack.http(path, { method: 'POST', body })

// Before the tests that run at the same time, whose memory it would measure.
test('The replies to a pipeline are measured as they arrive: it takes no more memory than the limit.', async () => {
  const stack = await start({ timeout: 30_000 })
  await stack.direct('SET', 'big', 'x'.repeat(9_000_000))
  let peak = 0
  const before = process.memoryUsage().rss
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
  const { status, json } = await post(stack, '/pipeline', new Array(60).fill(['get', 'big']))
  // The bridge still receives the other replies, in front of this one.
  expect(await stack.command('strlen', 'big')).toEqual({ result: 9_000_000 })
  clearInterval(timer)
  expect([status, json]).toEqual([
    400,
    { error: 'ERR max response size exceeded. Limit: 16777216 bytes, Actual: 18000000 bytes' },
  ])
  expect(peak - before).toBeLessThan(250_000_000) // all replies are 540 MB
})

describe('TLS', () => {
  let secure: RunningRedis
  let port: number
  beforeAll(async () => {
    port = await freePort()
    const files = ['--tls-cert-file', file('cert'), '--tls-key-file', file('key')]
    const args = ['--tls-port', `${port}`, ...files, '--tls-ca-cert-file', file('cert')]
    secure = await startRedis({ own: true, args: [...args, '--tls-auth-clients', 'no'] })
  })
  afterAll(() => secure?.stop())

  test('The bridge serves HTTPS, and speaks TLS to Redis with the given authority.', async () => {
    const bridge = await startBridge({
      redis: `rediss://localhost:${port}`,
      redisCa: cert,
      tls: { cert, key },
    })
    expect(bridge.url).toMatch(/^https:/)
    const headers = { authorization: 'Bearer dev' }
    const sent = httpsRequest(`${bridge.url}/echo/secret`, { ca: cert, headers })
    const [response] = await once(sent.end(), 'response')
    expect(String(await response.setEncoding('utf8').toArray())).toBe('{"result":"secret"}')
    await expect(fetch(`${bridge.url}/ping`, { headers })).rejects.toThrow() // unknown authority
    await bridge.close()
  })

  test('A Redis whose certificate is not signed by a known authority is refused.', async () => {
    await expect(startBridge({ redis: `rediss://localhost:${port}` })).rejects.toThrow(
      /does not respond: .*self-signed certificate/,
    )
  })
})

describe.concurrent('backpressure', () => {
  test('Requests beyond the queue get 429 with Retry-After; the others succeed.', async () => {
    const stack = await start({ maxRunning: 2, maxWaiting: 3, rtt: 1000 })
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => post(stack, '/', ['incr', 'n'])),
    )
    const count = (status: number) => answers.filter((answer) => answer.status === status).length
    expect([count(200), count(429)]).toEqual([5, 7])
    const { headers, json } = answers.find(({ status }) => status === 429)!
    expect(headers.get('retry-after')).toBe('1')
    expect(json).toEqual({ error: 'ERR the bridge is overloaded: 3 requests are waiting' })
    expect(await stack.command('get', 'n')).toEqual({ result: '5' }) // a refused request runs nothing
  })

  test('A request whose client disconnects while it waits runs nothing.', async () => {
    const stack = await start({ maxRunning: 1, rtt: 1500 })
    const first = post(stack, '/', ['incr', 'n'])
    const metrics = async () => (await stack.http('/metrics')).text
    await until(async () => expect(await metrics()).toContain('requests_running 1\n'))
    const leaving = new AbortController()
    const headers = { authorization: 'Bearer dev' }
    const init = { method: 'POST', headers, body: '["incr","n"]', signal: leaving.signal }
    const left = expect(fetch(stack.bridge.url, init)).rejects.toThrow()
    await until(async () => expect(await metrics()).toContain('requests_waiting 1\n'))
    leaving.abort()
    await left
    expect((await first).json).toEqual({ result: 1 })
    expect((await post(stack, '/', ['incr', 'n'])).json).toEqual({ result: 2 })
  })

  test('The time in the queue counts towards the deadline of a request.', async () => {
    const stack = await start({ maxRunning: 1, timeout: 2000 })
    const hangs = post(stack, '/', ['eval', 'while true do end', 0])
    const answers = [hangs, ...Array.from({ length: 3 }, () => post(stack, '/', ['incr', 'n']))]
    const begin = performance.now()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses).toEqual([503, 503, 503, 503])
    // Not 2 s for each request in turn.
    expect(performance.now() - begin).toBeLessThan(6000)
  })

  test('Requests that wait run in the order of their arrival.', async () => {
    const stack = await start({ maxRunning: 1, maxWaiting: 100 })
    const bodies = Array.from({ length: 50 }, (_, index) => ['rpush', 'order', index])
    const answers = await Promise.all(bodies.map((body) => post(stack, '/', body)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    const { result } = await stack.command('llen', 'order')
    expect(result).toBe(50)
  })
})

// The timeout is also that of Redis, which needs a while for 20 MB on a busy machine.
describe.concurrent('a slow reader', () => {
  test('A client that reads no part of its response for the timeout is disconnected.', async () => {
    const stack = await start({ timeout: 2000 })
    await stack.direct('SET', 'huge', 'x'.repeat(10_000_000)) // twice what the kernel buffers
    const socket = connect(stack.bridge.port, '127.0.0.1').pause()
    socket.on('error', () => {})
    const closed = new Promise((resolve) => socket.once('close', resolve)) // a reset may close it while it is paused
    socket.write('GET /get/huge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer dev\r\n\r\n')
    // Up to 2 s for Redis, and twice the timeout: what the kernel took in the first one counts as read.
    await new Promise((resolve) => setTimeout(resolve, 8000))
    let received = 0
    socket.on('data', (chunk) => (received += chunk.length)).resume()
    await closed // a connection that the bridge keeps would stay open
    expect(received).toBeGreaterThan(1_000_000)
    expect(received).toBeLessThan(10_000_000)
  })

  test('A client that reads slowly gets its whole response.', async () => {
    const stack = await start({ timeout: 4000, maxReply: Infinity })
    await stack.direct('SET', 'huge', 'x'.repeat(20_000_000))
    const socket = connect(stack.bridge.port, '127.0.0.1')
    socket.write('GET /get/huge HTTP/1.0\r\nAuthorization: Bearer dev\r\n\r\n')
    let [received, pauses] = [0, 0]
    socket.on('data', (chunk) => {
      received += chunk.length
      if (pauses >= 15 || received < pauses * 1_300_000) return
      pauses++
      socket.pause()
      setTimeout(() => socket.resume(), 100)
    })
    await once(socket, 'close')
    expect(received).toBeGreaterThan(20_000_000)
  })
})

describe.concurrent('limits', () => {
  test('A body, a pipeline and a response beyond their limits are refused.', async () => {
    const stack = await start({ maxBody: 1000, maxPipeline: 3, maxReply: 200 })
    await stack.direct('SET', 'k', 'x'.repeat(150))
    const error = async (path: string, body: unknown) => {
      const { status, json } = await post(stack, path, body)
      return [status, (json as { error: string }).error]
    }
    expect(await error('/', ['set', 'k', 'x'.repeat(987)])).toEqual([
      400,
      'ERR max request size exceeded. Limit: 1000 bytes, Actual: 1001 bytes',
    ])
    for (const path of ['/pipeline', '/multi-exec']) {
      expect(await error(path, new Array(4).fill(['ping']))).toEqual([
        400,
        'ERR max pipeline size exceeded. Limit: 3 commands, Actual: 4 commands',
      ])
    }
    expect((await post(stack, '/pipeline', [['get', 'k']])).status).toBe(200)
    expect(
      await error('/pipeline', [
        ['get', 'k'],
        ['get', 'k'],
      ]),
    ).toEqual([
      400,
      expect.stringMatching(
        /^ERR max response size exceeded\. Limit: 200 bytes, Actual: \d+ bytes$/,
      ),
    ])
  })
})

describe.concurrent('health and metrics', () => {
  test('Liveness and readiness need no token; readiness fails while Redis is down.', async () => {
    const stack = await start()
    const health = async (path: string) => {
      const { status, json } = await stack.http(path, { token: null })
      return [status, (json as { status: string }).status]
    }
    expect(await health('/health')).toEqual([200, 'ready'])
    expect(await health('/health/ready')).toEqual([200, 'ready'])
    await stack.direct('CLIENT', 'KILL', 'TYPE', 'normal') // reconnects
    await until(async () => expect(await health('/health')).toEqual([200, 'ready']))
    await stack.stopRedis()
    await until(async () => expect(await health('/health')).toEqual([503, 'not ready']))
    expect(await health('/health/live')).toEqual([200, 'live'])
  })
})

describe.concurrent('the request log', () => {
  test('Each request is one line of JSON without keys, arguments, tokens and URLs.', async () => {
    const lines: string[] = []
    const stack = await start({ token: 'secret-token', log: (line) => lines.push(line) })
    await post(stack, '/pipeline', [
      ['set', 'secret-key', 'secret-value'],
      ['GET', 'secret-key'],
    ])
    await post(stack, '/', ['secret-command'])
    await stack.http('/get/secret-key?_token=secret-token', { token: null })
    await stack.http('/ping?_token=secret-wrong', { token: null })
    expect(lines.join()).not.toContain('secret')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'pipeline', status: 200, commands: 2, names: { set: 1, get: 1 } },
      { kind: 'command', status: 400, commands: 1, names: { unknown: 1 } },
      { kind: 'command', status: 200, commands: 1, names: { get: 1 } },
      { kind: 'other', status: 401, commands: 0, names: {} },
    ])
    expect(Object.keys(JSON.parse(lines[0]!))).toEqual([
      'time',
      'kind',
      'status',
      'ms',
      'commands',
      'names',
    ])
  })
})

describe.concurrent('shutdown', () => {
  test('Closing the bridge accepts no connections, finishes requests in flight, and closes theirs.', async () => {
    const stack = await start({ rtt: 5000, grace: 20_000 })
    const answer = post(stack, '/', ['incr', 'n'])
    await until(async () => {
      const { text } = await stack.http('/metrics')
      expect(text).toContain('upstash_bridge_requests_running 1\n')
    })
    const closed = stack.bridge.close()
    await until(() => expect(fetch(`${stack.bridge.url}/health`)).rejects.toThrow())
    const { status, headers, json } = await answer
    expect([status, headers.get('connection'), json]).toEqual([200, 'close', { result: 1 }])
    await closed
  })

  test('Closing the bridge ends requests that take longer than the grace period.', async () => {
    const stack = await start({ rtt: 60_000, grace: 200 })
    const answer = post(stack, '/', ['ping'])
    const refused = expect(answer).rejects.toThrow()
    await until(async () =>
      expect((await stack.http('/metrics')).text).toContain('requests_running 1\n'),
    )
    await stack.bridge.close()
    await refused
  })
})

test('A bridge that other machines reach needs a token.', async () => {
  const redis = await startRedis({ own: true })
  await expect(startBridge({ redis: redis.url, host: '0.0.0.0' })).rejects.toThrow(
    'token: expected a token, because the bridge is reachable from other machines',
  )
  await redis.stop()
})
