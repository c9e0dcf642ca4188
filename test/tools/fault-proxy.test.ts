import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Faults, type FaultText, kinds, startFaults } from '../support/fault-proxy/index.ts'

delete process.env.REDIS_URL // these tests flush the scripts of their Redis
let redis: RunningRedis
let bridge: Bridge
let faults: Faults
beforeAll(async () => {
  redis = await startRedis()
  bridge = await startBridge({ redis: redis.url })
  faults = await startFaults({ target: bridge.url })
})
afterEach(() => faults.set(null))
afterAll(async () => {
  await faults.close()
  await bridge.close()
  await redis.stop()
})

const post = (path: string, body: unknown, signal = AbortSignal.timeout(10_000)) =>
  fetch(faults.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${bridge.token}` },
    body: JSON.stringify(body),
    signal,
  })
const command = async (...parts: unknown[]) => (await post('/', parts)).json()

describe('the proxy without a fault', () => {
  test('The proxy forwards commands, paths, pipelines and errors unchanged.', async () => {
    expect(await command('SET', 'k', 'ü')).toEqual({ result: 'OK' })
    expect(await (await post('/get/k', '')).json()).toEqual({
      error: expect.stringMatching(/^ERR wrong number/),
    })
    const byPath = await fetch(`${faults.url}/get/k?_token=${bridge.token}`)
    expect(await byPath.json()).toEqual({ result: 'ü' })
    expect(await (await post('/pipeline', [['GET', 'k'], ['PING']])).json()).toEqual([
      { result: 'ü' },
      { result: 'PONG' },
    ])
    const response = await post('/', ['NOPE'])
    expect([response.status, response.headers.has('upstash-sync-token')]).toEqual([400, true])
  })

  test('The proxy forwards a stream as it arrives.', async () => {
    const ending = new AbortController()
    const response = await post('/subscribe/channel', [], ending.signal)
    const reader = response.body!.getReader()
    const first = Buffer.from((await reader.read()).value!).toString()
    expect(first).toContain('data: subscribe,channel,1')
    await command('PUBLISH', 'channel', 'hello')
    expect(Buffer.from((await reader.read()).value!).toString()).toContain('message,channel,hello')
    ending.abort()
  })
})

describe('a fault', () => {
  const hits = async (count: number) => {
    const hit: boolean[] = []
    for (let i = 0; i < count; i++) hit.push((await post('/', ['PING'])).status === 418)
    return hit
  }

  test('A fault with `share` applies to that share of the requests, evenly spread.', async () => {
    await faults.set('status=418', { share: 0.25 })
    expect(await hits(8)).toEqual([false, false, false, true, false, false, false, true])
    await faults.set('status=418', { share: 0.1 })
    expect((await hits(30)).filter(Boolean)).toHaveLength(3)
  })

  test('A fault with `next` applies to that number of requests and then ends.', async () => {
    await faults.set('status=418', { next: 2 })
    expect(await hits(4)).toEqual([true, true, false, false])
  })

  test('After the fault "refuse" the proxy listens on the same port again.', async () => {
    await faults.set('refuse')
    const [error] = await once(connect(Number(new URL(faults.url).port), '127.0.0.1'), 'error')
    expect(error.code).toBe('ECONNREFUSED')
    await faults.set(null)
    expect(await command('PING')).toEqual({ result: 'PONG' })
  })

  test.each<[FaultText, number]>([
    ['hang', 0],
    ['reset', 0],
    ['lose', 1],
    ['reset-after', 1],
    ['reset-body', 1],
    ['stall-body', 1],
    ['truncated', 1],
    ['duplicate', 2],
    ['status=500', 0],
    ['over-quota', 0],
  ])(
    'With the fault %s the database runs a command %d times, as `counts` and the counter in Redis confirm.',
    async (fault, times) => {
      await command('SET', 'n', '0')
      const before = faults.counts()
      await faults.set(fault)
      await post('/', ['INCR', 'n'], AbortSignal.timeout(2000))
        .then((response) => response.text())
        .catch(() => {})
      await faults.set(null)
      const after = faults.counts()
      expect(after.arrived.incr! - (before.arrived.incr ?? 0)).toBe(1)
      expect((after.delivered.incr ?? 0) - (before.delivered.incr ?? 0)).toBe(times)
      expect(after.hit - before.hit).toBe(1)
      expect(await command('GET', 'n')).toEqual({ result: String(times) })
    },
  )

  test('The fault "clock" shifts the time of a script, given or empty, and changes no other command.', async () => {
    const script = 'return {KEYS[1], ARGV[1], ARGV[2]}'
    await faults.set('clock=-60000')
    const evaluate = async (time: string) =>
      ((await command('EVAL', script, 1, 'k', time, 'x')) as { result: string[] }).result
    expect(await evaluate('1000000')).toEqual(['k', '940000', 'x'])
    expect(Math.abs(Number((await evaluate(''))[1]) - Date.now() + 60_000)).toBeLessThan(5000)
    expect(await evaluate('2:a:1000000')).toEqual(['k', '2:a:940000', 'x'])
    expect((await evaluate('2::'))[1]).toMatch(/^2::\d{13}$/)
    expect(await command('ECHO', 'x')).toEqual({ result: 'x' })
  })

  test('The fault "noscript" empties the script cache.', async () => {
    const { result: sha } = (await command('SCRIPT', 'LOAD', 'return 1')) as { result: string }
    expect(await command('EVALSHA', sha, 0)).toEqual({ result: 1 })
    await faults.set('noscript')
    expect(await command('EVALSHA', sha, 0)).toEqual({ error: expect.stringMatching(/^NOSCRIPT/) })
  })

  test.each([
    ['nonsense', '"nonsense" is not a fault: expected one of delay, hang, '],
    ['delay=soon', 'delay: expected milliseconds from 0 to 600000, got "soon"'],
    ['status=99', 'status: expected an HTTP status from 200 to 599, got "99"'],
    ['hang=3', 'hang: expected no argument, got "3"'],
    ['wrong-types=x', 'wrong-types: expected text, fraction, null, nested, boolean, got "x"'],
  ])(
    'The invalid fault "%s" is refused with a message that says what was expected.',
    async (fault, message) => {
      await expect(faults.set(fault as FaultText)).rejects.toThrow(message)
    },
  )

  test.each([
    ['status', { share: 0 }, 'share: expected a number above 0 and at most 1'],
    ['status', { next: 1.5 }, 'next: expected a whole number, 1 or more'],
    ['refuse', { share: 0.5 }, 'refuse: affects all requests'],
  ] as const)('The fault "%s" with %j is refused.', async (fault, aim, message) => {
    await expect(faults.set(fault, aim)).rejects.toThrow(message)
  })
})

test('A target that is down results in a 502, not a crash.', async () => {
  const lonely = await startFaults({ target: 'http://127.0.0.1:1' })
  const response = await fetch(lonely.url, { method: 'POST', body: '["PING"]' })
  await lonely.close()
  expect([response.status, await response.json()]).toEqual([
    502,
    { error: 'ERR the target of the fault proxy does not respond' },
  ])
})

describe('the command line', () => {
  const file = fileURLToPath(new URL('../support/fault-proxy/cli.ts', import.meta.url))
  const run = (...args: string[]) => spawn(process.execPath, [file, ...args])
  async function output(...args: string[]) {
    const child = run(...args)
    let text = ''
    child.stdout.on('data', (chunk) => (text += chunk))
    child.stderr.on('data', (chunk) => (text += chunk))
    const [code] = await once(child, 'close')
    return { code, text }
  }

  test('--help lists every fault.', async () => {
    const { code, text } = await output('--help')
    expect(code).toBe(0)
    for (const name of Object.keys(kinds)) expect(text).toMatch(new RegExp(`^  ${name}[= ]`, 'm'))
  })

  test('README.md lists every fault.', async () => {
    const readme = await readFile(
      new URL('../support/fault-proxy/README.md', import.meta.url),
      'utf8',
    )
    for (const name of Object.keys(kinds)) expect(readme).toContain(`\`${name}\``)
  })

  test.each([
    [[], '--target: expected a REST URL'],
    [['--target', 'redis://127.0.0.1'], 'target: expected an http or https URL'],
    [['--target', 'http://127.0.0.1:1', '--port', '99999'], '--port: expected a whole number'],
    [['--target', 'http://127.0.0.1:1', '--fault', 'boom'], '"boom" is not a fault'],
    [['--target', 'http://127.0.0.1:1', '--port', '0', '--fault', 'hang', '--share', '7'], 'share'],
    [['--targte', 'x'], "Unknown option '--targte'"],
  ])('The arguments %j are refused with a message and no stack trace.', async (args, message) => {
    const { code, text } = await output(...args)
    expect([code, text]).toEqual([1, expect.stringContaining(message)])
    expect(text).not.toMatch(/^ +at /m)
  })

  test('The program starts with the given fault and accepts others on its standard input.', async () => {
    const child = run('--target', bridge.url, '--port', '0', '--fault', 'status=418')
    try {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const errors = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
      const url = ((await lines.next()).value as string).replace('UPSTASH_REDIS_REST_URL=', '')
      const status = async () => (await fetch(`${url}/ping?_token=${bridge.token}`)).status
      expect(await status()).toBe(418)
      child.stdin.write('html=503\n')
      expect((await errors.next()).value).toBe('fault: html=503')
      expect(await status()).toBe(503)
      child.stdin.write('nonsense\noff\n')
      expect((await errors.next()).value).toContain('is not a fault')
      expect((await errors.next()).value).toBe('no fault')
      expect(await status()).toBe(200)
    } finally {
      child.kill('SIGINT')
    }
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
  })
})
