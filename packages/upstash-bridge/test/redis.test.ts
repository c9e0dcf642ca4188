import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { newClient } from '../src/client.ts'
import { type RunningRedis, startRedis } from '../src/index.ts'
import { until } from './until.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const running: RunningRedis[] = []

async function start(...options: Parameters<typeof startRedis>) {
  const redis = await startRedis(...options)
  running.push(redis)
  return redis
}

async function ask(url: string, ...command: string[]): Promise<unknown> {
  const client = newClient({ url, socket: { reconnectStrategy: false } })
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

describe('a Redis that startRedis starts', () => {
  test('The started Redis listens on loopback, persists nothing, and leaves no files.', async () => {
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

  test('Servers that start at the same time get different ports.', async () => {
    const several = await Promise.all(Array.from({ length: 4 }, () => start()))
    expect(new Set(several.map(({ url }) => url)).size).toBe(4)
    expect(await Promise.all(several.map(({ url }) => ask(url, 'PING')))).toHaveLength(4)
  })

  test('The server uses the given port, and the error for a port in use contains the output of the server.', async () => {
    const probe = createServer()
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as { port: number }
    await expect(startRedis({ port })).rejects.toThrow(
      new RegExp(`did not start on port ${port}\\. Its last output:\\n[^]*Address already in use`),
    )
    await new Promise((resolve) => probe.close(resolve))
    expect((await start({ port })).url).toBe(`redis://127.0.0.1:${port}`)
  })

  test('The error for a server that does not start contains its output.', async () => {
    await expect(startRedis({ args: ['--nonesuch', '1'] })).rejects.toThrow('nonesuch')
  })

  test('`exited` reports that the server has ended unexpectedly.', async () => {
    const redis = await start()
    const pid = /process_id:(\d+)/.exec(String(await ask(redis.url, 'INFO', 'server')))?.[1]
    process.kill(Number(pid), 'SIGKILL')
    expect(await redis.exited).toMatchObject({ code: null, signal: 'SIGKILL' })
    await redis.stop()
  })

  test('Each server ends when its parent process is killed.', async () => {
    const code = `import { startRedis } from './src/index.ts'
      const [first, second, third] = await Promise.all([startRedis(), startRedis(), startRedis()])
      await second.stop()
      console.log(first.url, third.url)
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT })
    const urls = (await firstLine(parent)).split(' ')
    for (const url of urls) expect(await ask(url, 'PING')).toBe('PONG')
    parent.kill('SIGKILL')
    for (const url of urls) {
      await until(() => expect(ask(url, 'PING')).rejects.toThrow('ECONNREFUSED'))
    }
  })
})

describe('REDIS_URL', () => {
  test('The Redis of REDIS_URL is neither started nor stopped.', async () => {
    const { url } = await start()
    vi.stubEnv('REDIS_URL', url)
    const theirs = await startRedis()
    expect(theirs).toMatchObject({ url, source: 'REDIS_URL', owned: false })
    await theirs.stop()
    expect(await ask(url, 'PING')).toBe('PONG')
  })

  test('A REDIS_URL that does not respond is an error.', async () => {
    vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:1')
    await expect(startRedis()).rejects.toThrow(/^REDIS_URL does not respond: .*ECONNREFUSED/)
  })
})

describe('the search for the binary', () => {
  test.each(['REDIS_BIN', 'VALKEY_BIN'])(
    'The variable %s names the binary; a file that is not a Redis server is an error.',
    async (name) => {
      vi.stubEnv(name, process.execPath)
      await expect(startRedis()).rejects.toThrow(
        `${name}=${process.execPath} is not a Redis server`,
      )
    },
  )

  test('Without a binary and without apt the error lists the commands that install Redis.', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'))
    await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true })
    await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
    await mkdir(join(folder, 'node_modules'))
    await symlink(installed('redis'), join(folder, 'node_modules/redis'))
    const code = `import { startRedis } from './src/index.ts'
      await startRedis().catch((error) => console.log(error.message))`
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
      cwd: folder,
      env: { PATH: folder },
      encoding: 'utf8',
    })
    await rm(folder, { recursive: true })
    expect(output).toContain('brew install redis')
    expect(output).toContain('sudo apt-get install redis-server')
    expect(output).toContain('REDIS_URL=redis://127.0.0.1:6379')
  })
})

/** The folder of a dependency of this package. */
const installed = (name: string): string =>
  createRequire(import.meta.url)
    .resolve.paths(name)!
    .map((folder) => join(folder, name))
    .find((folder) => existsSync(folder))!

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout!) return String(chunk).trim()
  throw new Error('the process printed nothing')
}
