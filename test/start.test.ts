import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
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

/** The processes of the group and session that `npm start` leads, by name. */
const processes = (pid: number) => {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,comm='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
  const family = new Set([String(pid)])
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const [child, parent] of rows) if (family.has(parent!)) family.add(child!)
  }
  return rows
    .filter(([pid]) => family.has(pid!))
    .map(([pid, , name]) => ({ pid: Number(pid), name: name! }))
}
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
  expect(family.map(({ name }) => name).join()).toMatch(/workerd/)
  process.kill(-run.pid, 'SIGINT')
  await run.ended
  await expect.poll(() => family.filter(({ pid }) => alive(pid)), { timeout: 10_000 }).toEqual([])
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

test('a part that crashes is reported and stops the rest', async () => {
  const run = await npmStart()
  const family = processes(run.pid)
  const workerd = family.find(({ name }) => name.startsWith('workerd')) ?? family.at(-1)!
  const redis = family.find(({ name }) => /redis|valkey/.test(name)) ?? workerd
  process.kill(redis.pid, 'SIGKILL')
  expect(await run.ended).toBe(1)
  expect(run.output()).toMatch(/Stopped: (Redis|the Worker) ended/)
  await expect.poll(() => family.filter(({ pid }) => alive(pid)), { timeout: 10_000 }).toEqual([])
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
  expect(processes(run.pid).some(({ name }) => /redis-server|valkey/.test(name))).toBe(false)
  process.kill(-run.pid, 'SIGINT')
  await run.ended
  await stack.stop()
  await origin.close()
})
