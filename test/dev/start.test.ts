import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Echo, startOrigin } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import type { Series } from '../../src/observe/index.ts'
import { copyProject, type Project, processes, waitUntilEnded } from '../support/npm-start.ts'

let project: Project
let npmStart: Project['npmStart']
beforeAll(async () => {
  project = await copyProject()
  npmStart = project.npmStart
})
afterEach(() => project.kill())
afterAll(() => project.remove())

test('npm start runs the Worker, prints the address of each part, and stops everything on Ctrl-C.', async () => {
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
  await waitUntilEnded(family)
})

test('The dashboard of npm start has the counts of the requests that were sent.', async () => {
  const run = await npmStart()
  const seen = { allowed: 0, limited: 0 }
  while (seen.limited < 2) {
    const response = await fetch(run.url)
    await response.text()
    seen[response.status === 200 ? 'allowed' : 'limited']++
  }
  expect(seen.allowed).toBeGreaterThanOrEqual(10) // 11 if a window of the clock ends meanwhile
  const [, dashboard] = /Dashboard +(http:\S+)/.exec(run.output())!
  expect(await (await fetch(dashboard!)).text()).toContain('<title>')
  const stats = await (await fetch(`${dashboard}/_sluice/v1/stats`)).json()
  const counts = { allowed: 0, limited: 0 }
  for (const { outcome, decisions } of stats.total.series as Series[]) {
    counts[outcome as keyof typeof counts] += decisions
  }
  expect(counts).toEqual(seen)
})

test('npm start reports a port that is in use, and leaves nothing running.', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const run = await npmStart({ PORT: String(port) })
  expect(await run.ended).toBe(1)
  expect(run.output()).toContain(
    `Could not start: port ${port} is in use. Choose another port: PORT=${port + 1} npm start`,
  )
  server.close()
})

test.each([
  [{ PORT: 'x' }, 'PORT: expected a port number, got "x"'],
  [
    { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
    'set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither',
  ],
])(
  'npm start refuses the environment %j with a message that names the mistake.',
  async (env, message) => {
    const run = await npmStart(env)
    expect(await run.ended).toBe(1)
    expect(run.output()).toContain(`Could not start: ${message}`)
  },
)

test.each(['redis', 'workerd', 'the host of workerd'])(
  'npm start reports a crash of %s, and stops the rest.',
  async (part) => {
    const run = await npmStart()
    const family = processes(run.pid)
    const patterns = {
      redis: /^\S*(redis|valkey)\S* /,
      workerd: /\/workerd serve/,
      'the host of workerd': /cli\/main\.ts --process host/,
    }
    const victim = family.find(({ command }) => patterns[part as 'redis'].test(command))!
    process.kill(victim.pid, 'SIGKILL')
    expect(await run.ended).toBe(1)
    expect(run.output()).toMatch(
      part === 'redis' ? /Stopped: Redis ended/ : /Stopped: the Worker ended/,
    )
    await waitUntilEnded(family)
  },
)

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'The signal %s to npm start itself leaves nothing running.',
  async (signal) => {
    const run = await npmStart()
    const family = processes(run.pid)
    const itself = family.find(({ command }) => /dev\/start\.ts/.test(command))!
    process.kill(itself.pid, signal)
    await run.ended
    await waitUntilEnded(family)
  },
)

test('A WebSocket and an upload go through the port of npm start unchanged.', async () => {
  const run = await npmStart()
  try {
    const socket = new WebSocket(`${run.url.replace('http', 'ws')}/socket`)
    const message = new Promise((resolve) =>
      socket.addEventListener('message', ({ data }) => resolve(data)),
    )
    socket.addEventListener('open', () => socket.send('hello'))
    expect(await message).toBe('hello')
    socket.close()
    const body = 'x'.repeat(300_000)
    const echo = (await (await fetch(`${run.url}/upload`, { method: 'POST', body })).json()) as Echo
    expect(echo.body.sha256).toBe(createHash('sha256').update(body).digest('hex'))
    const empty = (await (await fetch(`${run.url}/upload`, { method: 'POST' })).json()) as Echo
    expect(empty.body.bytes).toBe(0)
    const sent = request(`${run.url}/headers/100000`, { maxHeaderSize: 200_000 }).end()
    const [{ headers }] = (await once(sent, 'response')) as [IncomingMessage]
    expect(headers['x-long']).toHaveLength(100_000)
  } finally {
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
})

test('npm start uses the database and the origin of the environment.', async () => {
  const stack: Stack = await startStack()
  const origin = await startOrigin()
  const run = await npmStart({
    UPSTASH_REDIS_REST_URL: stack.bridge.url,
    UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
    ORIGIN: `${origin.url}/base`,
  })
  const before = stack.httpRequests()
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
