/** `npx sluice dev` in a project: what it runs, what it reads, and how it ends. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Echo, startOrigin } from '../../cli/dev/origin.ts'
import type { Series } from '../../src/features/observe/index.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { unfolded } from '../support/curl.ts'
import { openSession } from '../support/dashboard-session.ts'
import { crash, processes, waitUntilEnded } from '../support/npm-start.ts'
import { startStack } from '../support/stack.ts'

const config = (limit: number, more = '') => `import { defineConfig } from 'sluice'
import { observe } from 'sluice/features'
${more}
export default defineConfig({
  origin: 'zone',
  deadline: '10s',
  use: [observe()],
  policies: [{ name: 'per-ip', limit: ${limit}, window: '1h', algorithm: 'fixed-window' }],
})
`
const WORKER = `import { createGateway } from 'sluice'
import config from '../sluice.config'
export default createGateway(config)
`
const BUILT = `import config, { createGateway } from '../sluice.built'
export default createGateway(config)
`
const TOML = 'name = "shop"\nmain = "app/worker.ts"\ncompatibility_date = "2026-10-01"\n'

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
  await project.write('package.json', '{ "name": "shop", "type": "commonjs" }')
  await project.write('sluice.config.ts', config(10))
  await project.write('wrangler.toml', TOML)
  await project.write('app/worker.ts', WORKER)
})
afterAll(async () => {
  project.kill()
  await project.remove()
})

describe('npx sluice dev without settings', () => {
  let run: Awaited<ReturnType<CliProject['dev']>>
  beforeAll(async () => {
    run = await project.dev()
  }, 120_000)

  test('It runs the Worker, and prints the address of each part.', async () => {
    const response = await fetch(`${run.url}/hello`)
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=9;t=\d+$/)
    expect(await response.json()).toMatchObject({ url: '/hello' })
    for (const word of ['Redis', 'Bridge', 'Origin', 'Worker', 'per-ip', `curl -i ${run.url}/`]) {
      expect(run.output()).toContain(word)
    }
  })

  test('A WebSocket and an upload go through its port unchanged.', async () => {
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

  test('Its dashboard has the counts of the requests that were sent.', async () => {
    const [, address = ''] = /Dashboard: .*\s+(http:\S+)/.exec(run.output())!
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
    expect(expected.allowed).toBe(10)
    expect(await counts()).toEqual(expected)
  })

  test('It limits requests, reloads after edits and builds the configuration if the Worker imports it built. SIGTERM leaves no process.', async () => {
    const statuses = async (ip: string, count: number) => {
      const all: number[] = []
      for (let n = 0; n < count; n++) {
        const headers = { 'CF-Connecting-IP': ip }
        all.push((await fetch(`${run.url}/x`, { headers })).status)
      }
      return all
    }
    expect(run.output()).toContain('Sluice is running.')
    expect(run.output()).toMatch(/per-ip +10 per 1h +fixed-window/)
    const output = async (after: () => Promise<unknown>, line: RegExp) => {
      const before = run.output().length
      await after()
      await expect.poll(() => run.output().slice(before), { timeout: 20_000 }).toMatch(line)
    }
    const save = (text: string) => () => project.write('sluice.config.ts', text)
    await output(save(config(3)), /^Reloaded: 1 policy \(per-ip\)\.$/m)
    expect(await statuses('192.0.2.2', 4)).toEqual([200, 200, 200, 429])
    await output(
      save(config(3, "\nthrow new Error('on purpose')\n")),
      /^Not reloaded: sluice\.config\.ts:4:7: on purpose\. The last valid configuration stays active\.$/m,
    )
    await output(save(config(3)), /^Reloaded: /m)
    // The folder of the Worker is not src.
    await output(
      () => project.write('app/worker.ts', `${WORKER}\nconsole.log('edited')\n`),
      /^Reloaded: /m,
    )
    expect(await statuses('192.0.2.4', 4)).toEqual([200, 200, 200, 429])
    // The built module does not exist yet.
    await output(() => project.write('app/worker.ts', BUILT), /^Reloaded: /m)
    expect(await statuses('192.0.2.5', 4)).toEqual([200, 200, 200, 429])
    await output(save('export defaul {'), /^Not reloaded: sluice\.config\.ts:1:\d+: /m)
    await output(
      save(config(3).replace("'1h'", '60')),
      /^Reloaded: 1 policy \(per-ip\)\. The linter finds 1: npx sluice check$/m,
    )
    await output(save(config(2)), /^Reloaded: /m)
    expect(await statuses('192.0.2.6', 3)).toEqual([200, 200, 429])
    await output(save(config(0)), /^Not reloaded: sluice\.config\.ts:8:32: policies\[0\]\.limit: /m)
    const family = processes(run.pid)
    expect(family.map(({ command }) => command).join()).toMatch(/workerd/)
    process.kill(run.pid, 'SIGTERM')
    expect(await run.ended).toBe(0)
    await waitUntilEnded(family)
  }, 90_000)
})

test('npx sluice dev reads variables from .dev.vars, and the variables that the configuration names from the environment. A crash of Redis stops the rest.', async () => {
  const digest = (key: string) => createHash('sha256').update(key).digest('hex')
  const policies = `import { defineConfig } from 'sluice'
import { jwt } from 'sluice/features'
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
  await project.write('sluice.config.ts', policies)
  await project.write(
    '.dev.vars',
    `SLUICE_API_TOKEN="a-token-of-dev-vars"\nAPI_KEYS=${digest('one')}\n`,
  )
  const run = await project.dev({ API_KEYS: digest('two'), NOT_NAMED: 'x' })
  const status = async (path: string, headers: Record<string, string>, init: RequestInit = {}) =>
    (await fetch(`${run.url}${path}`, { ...init, headers })).status
  expect(await status('/api/x', { 'x-api-key': 'two' })).toBe(200)
  expect(await status('/api/x', { 'x-api-key': 'one' })).toBe(403)
  const body = JSON.stringify({ policy: 'exports', key: '203.0.113.7' })
  const decide = (token: string) =>
    status('/_sluice/v1/decide', { authorization: `Bearer ${token}` }, { method: 'POST', body })
  expect(await decide('a-token-of-dev-vars')).toBe(200)
  expect(await decide('dev-api-token-0000')).toBe(401)
  const banner = unfolded(run.output())
  for (const text of [
    /per-key +7 per 1h \(plans of header:x-plan: pro 70\) +sliding-window +api-key +\/api\/\*, not \/api\/health/,
    /exports +2 in flight +concurrency +ip +POST \/exports\/:id/,
    /per-user +9 per 1h/,
    `curl -i ${run.url}/api/x -H 'x-api-key: KEY'`,
    `curl -i -X POST ${run.url}/exports/1`,
    /\/decide .*\$SLUICE_API_TOKEN.*"policy":"per-key"/,
    /policies\/per-key\/peek .*dev-operate-token-0000/,
    'The variable JWT_SECRET is not set. Add it to .dev.vars, or start with: JWT_SECRET=… npx sluice dev',
  ]) {
    expect(banner).toMatch(text)
  }
  expect(banner).not.toContain('"policy":"per-ip"')
  expect(banner).not.toContain('a-token-of-dev-vars')
  // An edit of .dev.vars reloads.
  await project.write('.dev.vars', 'SLUICE_API_TOKEN="another-token-of-dev-vars"\n')
  await expect.poll(run.output, { timeout: 20_000 }).toContain('Reloaded: 3 policies')
  expect(await decide('another-token-of-dev-vars')).toBe(200)
  await crash(run, 'redis')
  await rm(join(project.folder, '.dev.vars'))
  await project.write('sluice.config.ts', config(10))
}, 120_000)

test('npx sluice dev uses the database and the origin of the environment. A crash of workerd stops the rest.', async () => {
  const stack = await startStack()
  const origin = await startOrigin()
  const run = await project.dev({
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

test('npx sluice dev --store durable-objects counts without a Redis, also if the configuration is built, and Ctrl-C stops everything.', async () => {
  await project.write('app/worker.ts', BUILT)
  const run = await project.dev({}, '--store', 'durable-objects')
  const statuses: number[] = []
  for (let n = 0; n < 11; n++) statuses.push((await fetch(`${run.url}/hello`)).status)
  expect(statuses.indexOf(429)).toBe(10)
  expect(run.output()).toContain('a Durable Object counts for each client')
  const family = processes(run.pid)
  const commands = family.map(({ command }) => command).join()
  expect(commands).not.toMatch(/redis|valkey/)
  expect(commands).toMatch(/workerd/)
  process.kill(-run.pid, 'SIGINT')
  await run.ended
  await waitUntilEnded(family)
}, 120_000)
