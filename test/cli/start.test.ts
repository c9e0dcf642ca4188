import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Echo, startOrigin } from '../../cli/dev/origin.ts'
import type { Series } from '../../src/features/observe/index.ts'
import { openSession } from '../support/dashboard-session.ts'
import { inProcess } from '../support/dev-command.ts'
import {
  copyProject,
  crash,
  type Project,
  processes,
  waitUntilEnded,
} from '../support/npm-start.ts'
import { startStack } from '../support/stack.ts'

let project: Project
beforeAll(async () => {
  project = await copyProject('start')
})
afterAll(async () => {
  project.kill()
  await project.remove()
})

describe('npm start without settings', () => {
  let run: Awaited<ReturnType<Project['npmStart']>>
  beforeAll(async () => {
    run = await project.npmStart()
  }, 120_000)

  test('npm start runs the Worker, and prints the address of each part.', async () => {
    const response = await fetch(`${run.url}/hello`)
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=9;t=\d+$/)
    expect(await response.json()).toMatchObject({ url: '/hello' })
    for (const word of ['Redis', 'Bridge', 'Origin', 'Worker', 'per-ip', `curl -i ${run.url}/`]) {
      expect(run.output()).toContain(word)
    }
  })

  test('A WebSocket and an upload go through the port of npm start unchanged.', async () => {
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
  })

  test('The dashboard of npm start has the counts of the requests that were sent.', async () => {
    const [, address = ''] = /Dashboard +(http:\S+)/.exec(run.output())!
    const headers = { Cookie: await openSession({ address }) }
    const dashboard = new URL(address).origin
    expect(await (await fetch(dashboard)).text()).toContain('<title>')
    const counts = async () => {
      const stats = await (await fetch(`${dashboard}/_sluice/v1/stats`, { headers })).json()
      const sums = { allowed: 0, limited: 0 }
      for (const { outcome, decisions } of stats.total.series as Series[]) {
        sums[outcome as keyof typeof sums] += decisions
      }
      return sums
    }
    const expected = await counts()
    for (let refused = 0; refused < 2; ) {
      const response = await fetch(run.url)
      await response.text()
      if (response.status !== 200) refused++
      expected[response.status === 200 ? 'allowed' : 'limited']++
    }
    expect(expected.allowed).toBeGreaterThanOrEqual(10) // 11 if a window of the clock ends meanwhile
    expect(await counts()).toEqual(expected)
  })

  test('Ctrl-C stops everything.', async () => {
    const family = processes(run.pid)
    expect(family.map(({ command }) => command).join()).toMatch(/workerd/)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
    await waitUntilEnded(family)
  })
})

test('npm start reports a port that is in use.', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  vi.resetModules()
  const env = { PORT: String(port) }
  expect(await inProcess(() => import('../../tools/start.ts'), { env })).toEqual({
    code: 1,
    stdout: '',
    stderr: `\nCould not start: port ${port} is in use. Choose another port: PORT=${port + 1} npm start\n`,
  })
  server.close()
})

test('npm start reads variables from .dev.vars, and the variables that the configuration names from the environment. A crash of Redis stops the rest.', async () => {
  const file = join(project.root, 'sluice.config.ts')
  const good = await readFile(file, 'utf8')
  const vars = join(project.root, '.dev.vars')
  const digest = (key: string) => createHash('sha256').update(key).digest('hex')
  const config = `import { defineConfig } from './src/core/config/parse.ts'
import { jwt } from './src/features/jwt/index.ts'
export default defineConfig({
  origin: 'zone',
  deadline: '10s',
  use: [jwt({ secret: 'JWT_SECRET' })],
  apiKeys: { known: 'API_KEYS' },
  policies: [
    { name: 'per-key', limit: 7, limits: { pro: 70 }, plan: 'header:x-plan', window: '1h', key: 'api-key',
      onMissingKey: 'refuse', match: { path: '/api/*', not: { path: '/api/health' } } },
    { name: 'exports', algorithm: 'concurrency', limit: 2, window: '10m', match: { path: '/exports/:id', method: 'POST' } },
    { name: 'per-user', limit: 9, window: 3_600_000, key: 'jwt:sub', onMissingKey: 'refuse', match: { path: '/me' } },
  ],
})
`
  await writeFile(file, config)
  await writeFile(vars, `SLUICE_API_TOKEN="a-token-of-dev-vars"\nAPI_KEYS=${digest('one')}\n`)
  const run = await project.npmStart({ API_KEYS: digest('two'), NOT_NAMED: 'x' })
  const status = async (path: string, headers: Record<string, string>, init: RequestInit = {}) =>
    (await fetch(`${run.url}${path}`, { ...init, headers })).status
  expect(await status('/api/x', { 'x-api-key': 'two' })).toBe(200)
  expect(await status('/api/x', { 'x-api-key': 'one' })).toBe(403)
  const body = JSON.stringify({ policy: 'exports', key: '203.0.113.7' })
  const decide = (token: string) =>
    status('/_sluice/v1/decide', { authorization: `Bearer ${token}` }, { method: 'POST', body })
  expect(await decide('a-token-of-dev-vars')).toBe(200)
  expect(await decide('dev-api-token-0000')).toBe(401)
  const banner = run.output()
  for (const text of [
    /per-key +7 per 1h \(plans of header:x-plan: pro 70\) +sliding-window +api-key +\/api\/\*, not \/api\/health/,
    /exports +2 in flight +concurrency +ip +POST \/exports\/:id/,
    /per-user +9 per 3600000 ms/,
    `curl -i ${run.url}/api/x -H 'x-api-key: KEY'`,
    `curl -i -X POST ${run.url}/exports/1`,
    /\/decide .*\$SLUICE_API_TOKEN.*"policy":"per-key"/,
    /policies\/per-key\/peek .*dev-operate-token-0000/,
    'The variable JWT_SECRET is not set. Add it to .dev.vars, or start with: JWT_SECRET=… npm start',
  ]) {
    expect(banner).toMatch(text)
  }
  expect(banner).not.toContain('"policy":"per-ip"')
  expect(banner).not.toContain('a-token-of-dev-vars')
  // An edit of .dev.vars reloads.
  writeFileSync(vars, 'SLUICE_API_TOKEN="another-token-of-dev-vars"\n')
  await expect.poll(run.output, { timeout: 20_000 }).toContain('Reloaded: 3 policies')
  expect(await decide('another-token-of-dev-vars')).toBe(200)
  await crash(run, 'redis')
  await rm(vars)
  await writeFile(file, good)
}, 120_000)

test('npm start uses the database and the origin of the environment. A crash of workerd stops the rest.', async () => {
  const stack = await startStack()
  const origin = await startOrigin()
  const run = await project.npmStart({
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
  await crash(run, 'workerd')
  await stack.stop()
  await origin.close()
}, 120_000)

test('npm start -- --store durable-objects counts without a Redis.', async () => {
  const run = await project.npmStart({}, '--', '--store', 'durable-objects')
  try {
    const statuses: number[] = []
    for (let n = 0; n < 11; n++) statuses.push((await fetch(`${run.url}/hello`)).status)
    expect(statuses.indexOf(429)).toBe(10)
    expect(run.output()).toContain('a Durable Object counts for each client')
    expect(processes(run.pid).some(({ command }) => /redis|valkey/.test(command))).toBe(false)
  } finally {
    project.kill()
  }
}, 120_000)
