import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { startOrigin } from '../dev/origin.ts'
import { type Stack, startStack } from '../dev/stack.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
let child: ChildProcess | undefined
afterEach(() => {
  if (child?.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
})

/** Runs `npm start` until it says that all is up, or ends. */
async function npmStart(env: Record<string, string> = {}) {
  const port = env.PORT ?? String(await freePort())
  const started = spawn('npm', ['start'], {
    cwd: root,
    env: { ...process.env, PORT: port, ...env },
    detached: true,
  })
  child = started
  let output = ''
  const ended = new Promise<number | null>((resolve) => started.once('exit', resolve))
  const up = new Promise<void>((resolve) => {
    for (const stream of [started.stdout!, started.stderr!]) {
      stream.on('data', (chunk) => {
        output += chunk
        if (output.includes('Ctrl-C stops everything.')) resolve()
      })
    }
  })
  await Promise.race([up, ended])
  return { url: `http://127.0.0.1:${port}`, ended, output: () => output, pid: started.pid! }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** The processes that descend from one. */
function processes(ancestor: number): { pid: number; command: string }[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row)!)
    .map(([, pid, parent, command]) => ({
      pid: Number(pid),
      parent: Number(parent),
      command: command!,
    }))
  const family = new Set([ancestor])
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of rows) if (family.has(parent)) family.add(pid)
  }
  return rows.filter(({ pid, command }) => family.has(pid) && !command.startsWith('ps '))
}
const gone = (family: { pid: number; command: string }[]) =>
  expect.poll(() => family.filter(({ pid }) => alive(pid)), { timeout: 10_000 }).toEqual([])
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('npm start answers through the Worker, says what runs where, and Ctrl-C stops everything', async () => {
  const run = await npmStart()
  const response = await fetch(`${run.url}/hello`)
  expect(response.status).toBe(200)
  expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=9;t=\d+$/)
  expect(await response.json()).toMatchObject({ url: '/hello' })
  for (const word of ['Redis', 'Bridge', 'Origin', 'Worker', 'per-ip', `curl -i ${run.url}/`]) {
    expect(run.output()).toContain(word)
  }
  const family = processes(run.pid)
  expect(family.map(({ command }) => command).join()).toMatch(/workerd/)
  process.kill(-run.pid, 'SIGINT')
  await run.ended
  await gone(family)
})

test('a busy port is a clear message, and nothing is left running', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const run = await npmStart({ PORT: String(port) })
  expect(await run.ended).toBe(1)
  expect(run.output()).toContain(
    `Could not start: port ${port} is busy. Choose another: PORT=${port + 1} npm start`,
  )
  server.close()
})

test.each([
  [{ PORT: 'x' }, 'PORT: expected a port number, got "x"'],
  [
    { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
    'set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither',
  ],
])('%j is a clear message', async (env, message) => {
  const run = await npmStart(env)
  expect(await run.ended).toBe(1)
  expect(run.output()).toContain(`Could not start: ${message}`)
})

test.each(['redis', 'wrangler'])('a crash of %s is reported and stops the rest', async (part) => {
  const run = await npmStart()
  const family = processes(run.pid)
  const victim = family.find(({ command }) =>
    part === 'redis' ? /^\S*(redis|valkey)\S* /.test(command) : /wrangler\.js dev/.test(command),
  )!
  process.kill(victim.pid, 'SIGKILL')
  expect(await run.ended).toBe(1)
  expect(run.output()).toMatch(
    part === 'redis' ? /Stopped: Redis ended/ : /Stopped: the Worker ended \(SIGKILL\)/,
  )
  await gone(family)
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  '%s of npm start itself leaves nothing running',
  async (signal) => {
    const run = await npmStart()
    const family = processes(run.pid)
    const itself = family.find(({ command }) => /dev\/start\.ts/.test(command))!
    process.kill(itself.pid, signal)
    await run.ended
    await gone(family)
  },
)

test('a configuration that becomes wrong is told, and mended without a restart', async () => {
  const file = `${root}sluice.config.ts`
  const good = await readFile(file, 'utf8')
  const run = await npmStart()
  try {
    await writeFile(file, good.replace('limit: 10,', 'limit: 0,'))
    await expect
      .poll(run.output, { timeout: 20_000 })
      .toContain('policies[0].limit: expected a whole number of at least 1, got 0')
    await expect
      .poll(run.output, { timeout: 20_000 })
      .toContain('The Worker starts again when you save it.')
    await writeFile(file, good.replace('limit: 10,', 'limit: 11,'))
    const remaining = async () =>
      (await fetch(`${run.url}/`).catch(() => undefined))?.headers.get('ratelimit-policy')
    await expect.poll(remaining, { timeout: 20_000 }).toContain('"per-ip";q=11')
  } finally {
    await writeFile(file, good)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
})

test('a database and an origin of the environment are used instead', async () => {
  const stack: Stack = await startStack()
  const origin = await startOrigin()
  const before = stack.httpRequests()
  const run = await npmStart({
    UPSTASH_REDIS_REST_URL: stack.bridge.url,
    UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
    ORIGIN: `${origin.url}/base`,
  })
  expect(await (await fetch(`${run.url}/x`)).json()).toMatchObject({ url: '/base/x' })
  expect(stack.httpRequests() - before).toBe(1)
  expect(run.output()).toMatch(/from UPSTASH_REDIS_REST_URL/)
  expect(run.output()).not.toContain(stack.bridge.token)
  expect(processes(run.pid).some(({ command }) => /redis-server|valkey/.test(command))).toBe(false)
  process.kill(-run.pid, 'SIGINT')
  await run.ended
  await stack.stop()
  await origin.close()
})
