import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { newClient } from '../src/client.ts'
import { type Bridge, type RunningRedis, startBridge, startRedis } from '../src/index.ts'
import { until } from './until.ts'

const SCRIPT = `#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])`
const SHA = createHash('sha1').update(SCRIPT).digest('hex')

delete process.env.REDIS_URL // these tests stop their Redis and limit its memory
let redis: RunningRedis
let bridge: Bridge
beforeEach(async () => {
  redis = await startRedis({ args: ['--enable-debug-command', 'yes'] })
  bridge = await startBridge({ redis: redis.url, timeout: 500 })
})
afterEach(async () => {
  await bridge?.close()
  await redis?.stop()
})

async function post(path: string, body: unknown) {
  const start = performance.now()
  const headers = { authorization: 'Bearer dev' }
  const response = await fetch(bridge.url + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const json = await response.json()
  return { status: response.status, json, ms: performance.now() - start }
}

const command = async (...body: unknown[]) => (await post('', body)).json

async function direct<Result>(
  work: (ask: (...command: string[]) => Promise<unknown>) => Promise<Result>,
): Promise<Result> {
  const client = newClient({ url: redis.url })
  client.on('error', () => {})
  await client.connect()
  return work((...command) => client.sendCommand(command)).finally(() => client.destroy())
}

const ERROR = { error: expect.stringMatching(/^ERR Redis /) }

describe('Redis down', () => {
  test('While Redis is down every kind of request fails with 503 within 5 seconds.', async () => {
    await redis.stop()
    const answers = await Promise.all([
      post('', ['get', 'k']),
      post('/get/k', ''),
      post('', ['eval', SCRIPT, 1, 'k']),
      post('/pipeline', [
        ['get', 'k'],
        ['get', 'l'],
      ]),
      post('/multi-exec', [['get', 'k']]),
      post('/subscribe/channel', []),
    ])
    for (const { status, json, ms } of answers) {
      expect([status, json]).toEqual([503, ERROR])
      expect(ms).toBeLessThan(5000)
    }
  })

  test('The bridge reconnects automatically after Redis restarts.', async () => {
    const port = Number(new URL(redis.url).port)
    await command('eval', SCRIPT, 1, 'n')
    expect(await command('evalsha', SHA, 1, 'n')).toEqual({ result: 2 })
    await redis.stop()
    expect(await command('get', 'n')).toEqual(ERROR)
    redis = await startRedis({ port })
    await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
    expect(await command('evalsha', SHA, 1, 'n')).toEqual({
      error: expect.stringMatching(/^NOSCRIPT /),
    })
    expect(await command('eval', SCRIPT, 1, 'n')).toEqual({ result: 1 })
    expect(await command('evalsha', SHA, 1, 'n')).toEqual({ result: 2 })
  })

  test('A request that arrives while Redis is away for a moment succeeds.', async () => {
    const sockets: Socket[] = []
    // A relay instead of a restart, which takes longer than the bridge waits on a busy machine.
    const relay = createServer((socket) => {
      const onward = connect(Number(new URL(redis.url).port), '127.0.0.1')
      socket.pipe(onward).pipe(socket)
      for (const end of [socket, onward]) sockets.push(end.on('error', () => {}))
    })
    await once(relay.listen(0, '127.0.0.1'), 'listening')
    const { port } = relay.address() as AddressInfo
    const relayed = await startBridge({ redis: `redis://127.0.0.1:${port}`, timeout: 500 })
    const closed = once(relay.close(), 'close')
    for (const socket of sockets) socket.destroy()
    await closed
    const headers = { authorization: 'Bearer dev' }
    const response = fetch(relayed.url, { method: 'POST', headers, body: '["ping"]' })
    await new Promise((resolve) => setTimeout(resolve, 100))
    relay.listen(port, '127.0.0.1')
    expect(await (await response).json()).toEqual({ result: 'PONG' })
    await relayed.close()
    for (const socket of sockets) socket.destroy()
    relay.close()
  })

  test('A command fails and is not repeated when Redis ends during it.', async () => {
    const pid = await redisPid()
    const response = Promise.all([
      command('eval', "for i = 1, 1e9 do redis.call('INCR', 'n') end", 0),
      command('incr', 'n'),
    ])
    await new Promise((resolve) => setTimeout(resolve, 50))
    process.kill(pid, 'SIGKILL')
    expect(await response).toEqual([ERROR, ERROR])
  })

  test('The bridge does not start while Redis is down, and the error hides the password.', async () => {
    await redis.stop()
    await expect(startBridge({ redis: redis.url })).rejects.toThrow(
      /^Redis at redis:\/\/127\.0\.0\.1:\d+ does not respond/,
    )
    await expect(startBridge({ redis: 'redis://me:secret@127.0.0.1:1' })).rejects.toThrow(
      'Redis at redis://127.0.0.1:1 does not respond',
    )
  })
})

describe('a Redis that does not respond normally', () => {
  test('A suspended Redis makes requests fail after the timeout, and is used again when it resumes.', async () => {
    const pid = await redisPid()
    process.kill(pid, 'SIGSTOP')
    try {
      const answers = await Promise.all([post('', ['get', 'k']), post('/pipeline', [['get', 'k']])])
      for (const { status, json, ms } of answers) {
        expect([status, json]).toEqual([503, ERROR])
        expect(ms).toBeLessThan(5000)
      }
      const before = bridge.stats().dev!.commands
      await post('/pipeline', [['multi'], ['exec'], ['get', 'k']])
      expect(bridge.stats().dev!.commands).toBe(before) // refused and lost commands are not billed
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
  })

  test.each(['eval', 'pipeline', 'multi-exec'])(
    'A script of a client that outlasts the timeout is ended, also in: %s.',
    async (kind) => {
      await direct((ask) => ask('CONFIG', 'SET', 'busy-reply-threshold', '50'))
      const endless = ['eval', 'while true do end', 0]
      const sent =
        kind === 'eval' ? post('', endless) : post(`/${kind}`, [endless, endless, ['set', 'k', 1]])
      expect(await sent).toMatchObject({ status: 503, json: ERROR })
      await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
      expect(await command('incr', 'n')).toEqual({ result: 1 })
    },
  )

  test('A function that outlasts the timeout is ended.', async () => {
    await direct((ask) => ask('CONFIG', 'SET', 'busy-reply-threshold', '50'))
    const body = 'redis.register_function("endless", function() while true do end end)'
    await command('function', 'load', `#!lua name=endless\n${body}`)
    expect(await command('fcall', 'endless', 0)).toEqual(ERROR)
    await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
  })

  test('A script of another client of Redis is not ended: commands get BUSY until SCRIPT KILL.', async () => {
    await direct((ask) => ask('CONFIG', 'SET', 'busy-reply-threshold', '1500'))
    // The first command outlasts the timeout of the bridge.
    const running = direct((ask) => ask('EVAL', 'while true do end', '0')).catch(String)
    const busy = { error: expect.stringMatching(/^BUSY /) }
    await until(async () => expect(await command('get', 'k')).toEqual(busy))
    expect(await command('script', 'kill')).toEqual({ result: 'OK' })
    expect(await running).toContain('killed')
    await until(async () => expect(await command('get', 'k')).toEqual({ result: null }))
  })

  test('A Redis that is loading its data returns LOADING.', async () => {
    await direct(async (ask) => {
      await ask('CONFIG', 'SET', 'loading-process-events-interval-bytes', '1024')
      await ask('DEBUG', 'POPULATE', '300', 'key', '100')
      await ask('CONFIG', 'SET', 'key-load-delay', '5000')
    })
    const loaded = direct((ask) => ask('DEBUG', 'RELOAD'))
    await vi.waitFor(
      async () => {
        const { status, json } = await post('', ['get', 'k'])
        expect([status, json]).toEqual([400, { error: expect.stringMatching(/^LOADING /) }])
      },
      { interval: 10, timeout: 5000 },
    )
    await loaded
    expect(await command('get', 'k')).toEqual({ result: null })
  })

  test('A Redis without free memory returns OOM to commands and to scripts.', async () => {
    await direct((ask) => ask('CONFIG', 'SET', 'maxmemory', '1'))
    const oom = { error: expect.stringMatching(/^OOM command not allowed/) }
    expect(await command('set', 'k', 'x')).toEqual(oom)
    expect(await command('eval', "return redis.call('SET', 'k', 1)", 0)).toEqual(oom)
    expect(await command('eval', SCRIPT, 1, 'k')).toEqual(oom)
    expect(
      (
        await post('/pipeline', [
          ['set', 'k', 1],
          ['get', 'k'],
        ])
      ).json,
    ).toEqual([oom, { result: null }])
    expect(await post('/multi-exec', [['set', 'k', 1]])).toMatchObject({
      status: 400,
      json: { error: expect.stringMatching(/^EXECABORT .*OOM/) },
    })
  })

  test('A malformed reply of Redis is an error, and the following replies match their requests.', async () => {
    const deep = 'local t = {} for i = 1, 20000 do t = {t} end return t'
    const answers = await Promise.all([
      command('eval', deep, 0),
      ...Array.from({ length: 20 }, () => command('echo', 'x')),
    ])
    expect(answers[0]).toEqual(ERROR)
    for (let index = 0; index < 20; index++) {
      expect(await command('echo', `e${index}`)).toEqual({ result: `e${index}` })
    }
  })
})

describe('the rights of scripts', () => {
  const select = ['eval', 'return redis.call(unpack(ARGV))', 0, 'SELECT', 3]

  test('After a restart of Redis scripts have no more rights than before.', async () => {
    const port = Number(new URL(redis.url).port)
    const refused = { error: expect.stringMatching(/can't run this command|no permissions to run/) }
    expect(await command(...select)).toEqual(refused)
    await redis.stop()
    redis = await startRedis({ port })
    await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
    expect(await command(...select)).toEqual(refused)
  })

  test('A second bridge on the same Redis does not end the first one.', async () => {
    const other = await startBridge({ redis: redis.url })
    await other.close()
    await direct((ask) => ask('CLIENT', 'KILL', 'TYPE', 'normal'))
    await until(async () => expect(await command('ping')).toEqual({ result: 'PONG' }))
  })

  test('A user that the URL names keeps its rights.', async () => {
    const url = redis.url.replace('//', '//default:x@')
    const named = await startBridge({ redis: url })
    const headers = { authorization: 'Bearer dev' }
    const body = JSON.stringify(select)
    const response = await fetch(named.url, { method: 'POST', headers, body })
    expect(await response.json()).toEqual({ result: 'OK' })
    await named.close()
  })

  test('A Redis without users is refused, with the way to use it.', async () => {
    await redis.stop()
    redis = await startRedis({ args: ['--rename-command', 'ACL', ''] })
    await expect(startBridge({ redis: redis.url })).rejects.toThrow(
      /does not let the bridge limit the rights of scripts \(.*ACL.*redis:\/\/default:password@host/,
    )
  })
})

test('Closing the bridge waits for requests in flight.', async () => {
  const slow = await startBridge({ redis: redis.url, rtt: 1500, grace: 20_000 })
  const response = fetch(slow.url, {
    method: 'POST',
    headers: { authorization: 'Bearer dev' },
    body: '["ping"]',
  })
  await until(() => expect(slow.stats().dev!.http).toBe(1))
  await slow.close()
  expect(await (await response).json()).toEqual({ result: 'PONG' })
  await expect(fetch(slow.url)).rejects.toThrow()
})

async function redisPid(): Promise<number> {
  const info = await direct((ask) => ask('INFO', 'server'))
  return Number(/process_id:(\d+)/.exec(String(info))?.[1])
}
