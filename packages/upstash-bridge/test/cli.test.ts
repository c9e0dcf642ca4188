import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { parseCli } from '../src/cli-options.ts'
import { startBridge, startRedis } from '../src/index.ts'

delete process.env.REDIS_URL

describe('parsing the command line', () => {
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
    ['--cluster a:7000,b:7001', { redis: [], cluster: ['redis://a:7000', 'redis://b:7001'] }],
    [
      '--cluster rediss://me:secret@a:7000,[::1]:7001',
      { cluster: ['rediss://me:secret@a:7000', 'rediss://me:secret@[::1]:7001'] },
    ],
    [
      '--sentinel main@a:26379,b:26379',
      { sentinel: { name: 'main', urls: ['redis://a:26379', 'redis://b:26379'] } },
    ],
    [
      '--host 0.0.0.0 --token a --read-only-token b',
      { host: '0.0.0.0', token: 'a', tokens: [{ token: 'a' }, { token: 'b', readOnly: true }] },
    ],
    [
      '--max-running 2 --max-waiting 0 --max-body 3 --max-pipeline 4 --max-reply 5 --timeout 6 --pipeline-timeout 8 --grace 7',
      {
        maxRunning: 2,
        maxWaiting: 0,
        maxBody: 3,
        maxPipeline: 4,
        maxReply: 5,
        timeout: 6,
        pipelineTimeout: 8,
        grace: 7,
      },
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
  ])('The arguments %j are parsed.', (line, options) => {
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
    ['--redis redis://a --redis redis://b', 'needs its own token'],
    [
      '--allow-host http://bridge:8079',
      '--allow-host: expected a host name without scheme and port, such as "host.docker.internal", got "http://bridge:8079"',
    ],
    ['--allow-host *', '--allow-host: expected a host name'],
    ['--cluster a:1 --redis redis://b', 'expected only one of --redis, --cluster and --sentinel'],
    ['--cluster redis://a:1,redis://b:2', '--cluster: expected host:port, got "redis://b:2"'],
    ['--cluster a', '--cluster: expected host:port, got "a"'],
    ['--sentinel a:26379', '--sentinel: expected name@host:port, got "a:26379"'],
    ['--sentinel main@a', '--sentinel: expected name@host:port, got "a"'],
    ['--host 0.0.0.0', '--host: expected --token or --token-file'],
    ['--tls-cert package.json', '--tls-cert: expected --tls-key'],
    ['--redis-ca /nonesuch', '--redis-ca: ENOENT'],
    ['--token-file /nonesuch', '--token-file: ENOENT'],
    ['--read-only-token=', '--read-only-token: expected text'],
    ['--redis redis://a=one --token two --token three', 'expected no other tokens'],
    ['--max-running 0', '--max-running: expected a whole number from 1'],
    ['--token=', '--token: expected text'],
    ['--no-check-keys=yes', '--no-check-keys'],
  ])('The arguments %j are refused with a message that names the mistake.', (line, message) => {
    expect(() => parseCli(line.split(' '))).toThrow(message)
  })
})

describe('the bridge as a program', () => {
  let child: ChildProcess | undefined
  afterEach(() => child?.kill('SIGKILL'))

  function run(...args: string[]) {
    const script = fileURLToPath(new URL('../src/main.ts', import.meta.url))
    const started = spawn(process.execPath, [script, ...args])
    child = started
    const output = { out: '', err: '' }
    started.stdout.on('data', (chunk) => {
      output.out += chunk
    })
    started.stderr.on('data', (chunk) => {
      output.err += chunk
    })
    return { output, exit: once(started, 'close').then(([code]) => code as number), child: started }
  }

  test('Without --redis the bridge starts a Redis, prints the two UPSTASH_ lines, and stops the Redis when it ends.', async () => {
    const { output, exit, child } = run('--port', '0', '--token', 'mine')
    await vi.waitFor(() => expect(output.out).toContain('REST_TOKEN'), { timeout: 30_000 })
    const [, url = ''] =
      /^UPSTASH_REDIS_REST_URL=(http:\/\/127\.0\.0\.1:\d+)$/m.exec(output.out) ?? []
    expect(output.out).toBe(`UPSTASH_REDIS_REST_URL=${url}\nUPSTASH_REDIS_REST_TOKEN=mine\n`)
    const answer = await fetch(`${url}/ping`, { headers: { authorization: 'Bearer mine' } })
    expect(await answer.json()).toEqual({ result: 'PONG' })
    const [, redis = ''] = /(redis:\/\/127\.0\.0\.1:\d+)/.exec(output.err) ?? []
    child.kill('SIGINT')
    expect(await exit).toBe(0)
    await expect(startBridge({ redis })).rejects.toThrow('ECONNREFUSED')
  })

  test('With --redis the bridge uses that Redis and does not stop it.', async () => {
    const redis = await startRedis()
    const { output, exit, child } = run('--redis', redis.url, '--port', '0')
    await vi.waitFor(() => expect(output.out).toContain('REST_TOKEN=dev'), { timeout: 30_000 })
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
    await (await startBridge({ redis: redis.url })).close()
    await redis.stop()
  })

  test('--help prints the usage; an unknown option prints the usage and fails.', async () => {
    const help = run('--help')
    expect([await help.exit, help.output.out]).toEqual([0, expect.stringContaining('--rtt MS')])
    const wrong = run('--nonesuch')
    expect([await wrong.exit, wrong.output.err]).toEqual([1, expect.stringContaining('--rtt MS')])
  })

  test('A port in use and an unreachable Redis each print one line.', async () => {
    const redis = await startRedis()
    const taken = run('--redis', redis.url, '--port', new URL(redis.url).port)
    expect(await taken.exit).toBe(1)
    expect(taken.output.err).toBe(
      `Port ${new URL(redis.url).port} is in use: choose another port\n`,
    )
    await redis.stop()
    const absent = run('--redis', redis.url, '--port', '0')
    expect(await absent.exit).toBe(1)
    expect(absent.output.err).toMatch(
      /^Redis at redis:\/\/127\.0\.0\.1:\d+ does not respond: .*\n$/,
    )
  })
})
