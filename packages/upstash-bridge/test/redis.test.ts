import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type RunningRedis, startRedis } from '../src/redis.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const running: RunningRedis[] = []

async function start(...options: Parameters<typeof startRedis>) {
  const redis = await startRedis(...options)
  running.push(redis)
  return redis
}

async function ask(url: string, ...command: string[]): Promise<unknown> {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  await client.connect()
  return client.sendCommand(command).finally(() => client.destroy())
}

beforeEach(() => {
  for (const name of ['REDIS_URL', 'REDIS_BIN', 'VALKEY_BIN']) vi.stubEnv(name, undefined)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(running.splice(0).map((redis) => redis.stop()))
})

describe('a Redis of our own', () => {
  test('answers, keeps nothing, and is on loopback alone', async () => {
    const redis = await start()
    expect(redis).toMatchObject({ owned: true, source: expect.stringMatching(/-server \d/) })
    expect(await ask(redis.url, 'PING')).toBe('PONG')
    expect(await ask(redis.url, 'CONFIG', 'GET', 'save')).toEqual(['save', ''])
    expect(await ask(redis.url, 'CONFIG', 'GET', 'appendonly')).toEqual(['appendonly', 'no'])
    expect(await ask(redis.url, 'CONFIG', 'GET', 'bind')).toEqual(['bind', '127.0.0.1'])
    const [, dir] = (await ask(redis.url, 'CONFIG', 'GET', 'dir')) as [string, string]
    expect(dir.startsWith(ROOT)).toBe(false)
    await redis.stop()
    await expect(ask(redis.url, 'PING')).rejects.toThrow('ECONNREFUSED')
    await expect(readdir(dir)).rejects.toThrow('ENOENT')
  })

  test('has a port of its own, however many start at once', async () => {
    const several = await Promise.all(Array.from({ length: 4 }, () => start()))
    expect(new Set(several.map(({ url }) => url)).size).toBe(4)
    expect(await Promise.all(several.map(({ url }) => ask(url, 'PING')))).toHaveLength(4)
  })

  test('takes the port it is told; a taken one is told in the server’s own words', async () => {
    const probe = createServer()
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as { port: number }
    await expect(startRedis({ port })).rejects.toThrow(
      new RegExp(`did not start on port ${port}\\. It said:\\n[^]*Address already in use`),
    )
    await new Promise((resolve) => probe.close(resolve))
    expect((await start({ port })).url).toBe(`redis://127.0.0.1:${port}`)
  })

  test('that does not start is told in its own words', async () => {
    await expect(startRedis({ args: ['--nonesuch', '1'] })).rejects.toThrow('nonesuch')
  })

  test('tells when it ends by itself', async () => {
    const redis = await start()
    const pid = /process_id:(\d+)/.exec(String(await ask(redis.url, 'INFO', 'server')))?.[1]
    process.kill(Number(pid), 'SIGKILL')
    expect(await redis.exited).toMatchObject({ code: null, signal: 'SIGKILL' })
    await redis.stop()
  })

  test('does not outlive a parent that is killed', async () => {
    const code = `import { startRedis } from './packages/upstash-bridge/src/redis.ts'
      console.log((await startRedis()).url)
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT })
    const url = await firstLine(parent)
    expect(await ask(url, 'PING')).toBe('PONG')
    parent.kill('SIGKILL')
    await vi.waitFor(() => expect(ask(url, 'PING')).rejects.toThrow('ECONNREFUSED'))
  })
})

describe('REDIS_URL', () => {
  test('is used as it is, neither started nor stopped', async () => {
    const { url } = await start()
    vi.stubEnv('REDIS_URL', url)
    const theirs = await startRedis()
    expect(theirs).toMatchObject({ url, source: 'REDIS_URL', owned: false })
    await theirs.stop()
    expect(await ask(url, 'PING')).toBe('PONG')
  })

  test('that does not answer is an error', async () => {
    vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:1')
    await expect(startRedis()).rejects.toThrow(/^REDIS_URL does not answer: .*ECONNREFUSED/)
  })
})

describe('the binary', () => {
  test.each(['REDIS_BIN', 'VALKEY_BIN'])(
    'may be named by %s; a wrong one is an error',
    async (name) => {
      vi.stubEnv(name, process.execPath)
      await expect(startRedis()).rejects.toThrow(`${name}=${process.execPath} is no Redis server`)
    },
  )

  test('missing, where none can be fetched, is one message with the commands', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'))
    const source = 'packages/upstash-bridge/src'
    await cp(join(ROOT, source), join(folder, source), { recursive: true })
    await mkdir(join(folder, 'node_modules'))
    for (const name of ['redis', '@redis']) {
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
    }
    const code = `import { startRedis } from './packages/upstash-bridge/src/redis.ts'
      await startRedis().catch((error) => console.log(error.message))`
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: folder,
      env: { PATH: folder },
      encoding: 'utf8',
    })
    await rm(folder, { recursive: true })
    expect(said).toContain('brew install redis')
    expect(said).toContain('sudo apt-get install redis-server')
    expect(said).toContain('REDIS_URL=redis://127.0.0.1:6379')
  })
})

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout!) return String(chunk).trim()
  throw new Error('it said nothing')
}
