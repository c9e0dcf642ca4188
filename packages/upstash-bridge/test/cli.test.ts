import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { parseCli } from '../src/cli.ts'
import { startBridge, startRedis } from '../src/index.ts'

delete process.env.REDIS_URL

describe('the command line', () => {
  test.each([
    ['', { redis: [], port: 8079, token: 'dev', rtt: 0, checkKeys: true }],
    [
      '--redis redis://127.0.0.1:6379 --port 0 --token t --rtt 30 --no-check-keys',
      {
        redis: [{ url: 'redis://127.0.0.1:6379', token: 't' }],
        port: 0,
        rtt: 30,
        checkKeys: false,
      },
    ],
    ['', { maxCommands: undefined }],
    ['--max-commands 250', { maxCommands: 250 }],
    ['', { allowHosts: [] }],
    [
      '--allow-host host.docker.internal --allow-host bridge',
      { allowHosts: ['host.docker.internal', 'bridge'] },
    ],
    [
      '--redis redis://a:1=one --redis rediss://:p@b:2/3=two',
      {
        redis: [
          { url: 'redis://a:1', token: 'one' },
          { url: 'rediss://:p@b:2/3', token: 'two' },
        ],
      },
    ],
  ])('%j is understood', (line, options) => {
    expect(parseCli(line.split(' ').filter(Boolean))).toMatchObject(options)
  })

  test.each([
    ['--prot 1', "Unknown option '--prot'"],
    ['redis://127.0.0.1', 'Unexpected argument'],
    ['--port', '--port'],
    ['--port x', '--port: expected a whole number from 0 to 65535, got "x"'],
    ['--port 65536', 'got "65536"'],
    ['--port 1.5', 'got "1.5"'],
    ['--max-commands 0', '--max-commands: expected a whole number from 1 to 999999, got "0"'],
    ['--max-commands 1e3', 'got "1e3"'],
    ['--rtt=-1', '--rtt: expected a whole number'],
    ['--redis 127.0.0.1:6379', '--redis: expected redis://host:port, got "127.0.0.1:6379"'],
    ['--redis http://a', '--redis: expected redis://host:port'],
    ['--redis redis://a --redis redis://b', 'a token each'],
    [
      '--allow-host http://bridge:8079',
      '--allow-host: expected a name without scheme and port like "host.docker.internal", got "http://bridge:8079"',
    ],
    ['--allow-host *', '--allow-host: expected a name'],
    ['--token=', '--token: expected text'],
    ['--no-check-keys=yes', '--no-check-keys'],
  ])('%j is a clear error', (line, message) => {
    expect(() => parseCli(line.split(' '))).toThrow(message)
  })
})

describe('the program', () => {
  let child: ChildProcess | undefined
  afterEach(() => child?.kill('SIGKILL'))

  function run(...args: string[]) {
    const script = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
    const started = spawn(process.execPath, [script, ...args])
    child = started
    const said = { out: '', err: '' }
    started.stdout.on('data', (chunk) => {
      said.out += chunk
    })
    started.stderr.on('data', (chunk) => {
      said.err += chunk
    })
    return { said, exit: once(started, 'close').then(([code]) => code as number), child: started }
  }

  test('brings its own Redis, prints the two lines, and leaves nothing behind', async () => {
    const { said, exit, child } = run('--port', '0', '--token', 'mine')
    await vi.waitFor(() => expect(said.out).toContain('REST_TOKEN'), { timeout: 10_000 })
    const [, url = ''] =
      /^UPSTASH_REDIS_REST_URL=(http:\/\/127\.0\.0\.1:\d+)$/m.exec(said.out) ?? []
    expect(said.out).toBe(`UPSTASH_REDIS_REST_URL=${url}\nUPSTASH_REDIS_REST_TOKEN=mine\n`)
    const answer = await fetch(`${url}/ping`, { headers: { authorization: 'Bearer mine' } })
    expect(await answer.json()).toEqual({ result: 'PONG' })
    const [, redis = ''] = /(redis:\/\/127\.0\.0\.1:\d+)/.exec(said.err) ?? []
    child.kill('SIGINT')
    expect(await exit).toBe(0)
    await expect(startBridge({ redis })).rejects.toThrow('ECONNREFUSED')
  })

  test('takes the Redis it is told, and leaves it running', async () => {
    const redis = await startRedis()
    const { said, exit, child } = run('--redis', redis.url, '--port', '0')
    await vi.waitFor(() => expect(said.out).toContain('REST_TOKEN=dev'), { timeout: 10_000 })
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    await (await startBridge({ redis: redis.url })).close()
    await redis.stop()
  })

  test('--help explains, a mistake explains too and fails', async () => {
    const help = run('--help')
    expect([await help.exit, help.said.out]).toEqual([0, expect.stringContaining('--rtt MS')])
    const wrong = run('--nonesuch')
    expect([await wrong.exit, wrong.said.err]).toEqual([1, expect.stringContaining('--rtt MS')])
  })

  test('a taken port and an absent Redis are one line each', async () => {
    const redis = await startRedis()
    const taken = run('--redis', redis.url, '--port', new URL(redis.url).port)
    expect(await taken.exit).toBe(1)
    expect(taken.said.err).toBe(`Port ${new URL(redis.url).port} is taken: choose another\n`)
    await redis.stop()
    const absent = run('--redis', redis.url, '--port', '0')
    expect(await absent.exit).toBe(1)
    expect(absent.said.err).toMatch(/^Redis at redis:\/\/127\.0\.0\.1:\d+ does not answer: .*\n$/)
  })
})
