import { rename, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { crash, processes, waitUntilEnded } from '../support/npm-start.ts'

const config = (limit: number, more = '') => `import { defineConfig } from 'sluice'
${more}
export default defineConfig({
  origin: 'zone',
  deadline: '10s',
  policies: [{ name: 'per-ip', limit: ${limit}, window: '1h', algorithm: 'fixed-window' }],
})
`
const WORKER = `import { createGateway } from 'sluice'
import config from '../sluice.config'
export default createGateway(config)
`
const JUDGED = 'Judged as a gateway: app/worker.ts calls createGateway.\n'
/** The type that `npm init -y` writes. */
const PACKAGE = '{ "name": "shop", "type": "commonjs" }'
const TOML = 'name = "shop"\nmain = "app/worker.ts"\ncompatibility_date = "2026-10-01"\n'

let project: CliProject
let sluice: CliProject['sluice']
beforeAll(async () => {
  project = await cliProject()
  sluice = project.sluice
  await project.write('package.json', PACKAGE)
  await project.write('sluice.config.ts', config(2))
  await project.write('wrangler.toml', TOML)
  await project.write('app/worker.ts', WORKER)
})
afterEach(async () => {
  project.kill()
  await project.write('sluice.config.ts', config(2))
})
afterAll(() => project.remove())

const path = (name: string) => join(project.folder, name)

test('npx sluice build --stats prints what the Worker consists of, and the parts have the size of the whole.', async () => {
  const more = `import { jitter } from 'sluice/features'\nconst penalty = 'manual'`
  const text = config(2, more)
    .replace("'fixed-window'", "'fixed-window', penalty")
    .replace("'zone',", "'zone', use: [jitter('10%')],")
  await project.write('sluice.config.ts', text)
  const built = WORKER.replace(
    /.*\n.*\n/,
    "import config, { createGateway } from '../sluice.built'\n",
  )
  await project.write('app/worker.ts', `${built}console.log('mine')\n`)
  const { code, stdout } = await sluice(['build', '--stats'])
  await rm(path('sluice.built.ts'))
  await project.write('app/worker.ts', WORKER)
  expect(code).toBe(0)
  const rows = [...stdout.matchAll(/^ {2}(\S.*?) {2,}(\d+\.\d)$/gm)]
  const sizes = new Map(rows.map(([, name, size]) => [name!, Number(size)]))
  expect([...sizes.keys()].sort()).toEqual([
    'Sluice without features',
    'all',
    'bans',
    'denialCache',
    'jitter()',
    'local',
    'your code, with its packages',
  ])
  const { all, ...parts } = Object.fromEntries(sizes)
  const sum = Object.values(parts).reduce((total, size) => total + size, 0)
  expect(sum).toBeCloseTo(all!, 0)
  for (const size of Object.values(parts)) expect(size).toBeGreaterThan(0)
  expect(sizes.get('bans')).toBeLessThan(sizes.get('Sluice without features')! / 10)
}, 60_000)

describe('npx sluice check', () => {
  test('A valid configuration passes all checks.', async () => {
    expect(await project.spawned(['check'])).toEqual({
      code: 0,
      stdout: `✓ policies\n✓ bindings\n✓ namespace (none)\n${JUDGED}`,
      stderr: '',
    })
  })

  test('An invalid setting is a finding.', async () => {
    await project.write('sluice.config.ts', config(0))
    expect(await sluice(['check', '--policies'])).toEqual({
      code: 1,
      stdout: `✗ policies
sluice.config.ts:6:32  invalid  policies[0].limit: expected a whole number of at least 1, got 0 (in "per-ip")
The configuration does not load until every invalid setting is fixed. npx sluice help NAME describes a field.
${JUDGED}`,
      stderr: '',
    })
  })

  test('The shield and the environments are compared with a wrangler.jsonc.', async () => {
    await project.write(
      'jsonc/wrangler.jsonc',
      `{
        "name": "shop", // comments are allowed
        "env": { "staging": {} },
        "ratelimits": [
          { "name": "SHIELD", "namespace_id": "1", "simple": { "limit": 50, "period": 10 } },
        ],
      }`,
    )
    await project.write(
      'jsonc/sluice.config.ts',
      config(2).replace(
        'policies:',
        "shield: { binding: 'SHIELD', limit: 100, period: '10s' }, policies:",
      ),
    )
    const { code, stdout } = await sluice(['check', '--config', 'jsonc/sluice.config.ts'])
    expect(code).toBe(1)
    expect(stdout).toBe(`✓ policies
✗ bindings
shield.limit: 100 here, but limit = 50 in wrangler.jsonc
✓ namespace (none; the environments of wrangler.jsonc (staging) share counters if they use the same database: npx sluice docs configuration#namespaces)
Judged as a gateway: no file imports it and calls rateLimiter, createSluice or rateLimitProxy.
`)
  }, 120_000) // loads wrangler, which takes long on a busy machine

  test('A folder without a configuration fails the check.', async () => {
    await rm(path('sluice.config.ts'))
    expect(await sluice(['check'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^✗ policies\nError: sluice\.config\.ts: the file does not exist\. To write one: npx sluice init\. If your code has the policies, move them there\n/,
      ),
    })
  })
})

test('npx sluice explain loads a TypeScript configuration with functions, an enum and an import without extension.', async () => {
  await project.write('limits/tenant.ts', 'export enum Limit { Tenant = 7 }\n')
  await project.write(
    'sluice.config.ts',
    `import { defineConfig } from 'sluice'
import { Limit } from './limits/tenant'
export default defineConfig({
  origin: 'zone',
  policies: [{ name: 'tenant', limit: Limit.Tenant, window: '1m', key: (c: { get(name: string): string }) => c.get('tenant') }],
})
`,
  )
  const { code, stdout, stderr } = await project.spawned(['explain', '--path', '/'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^yes +tenant +limit +7 per 1m, sliding-window\n +key +.*function/m)
})

describe('npx sluice dev', () => {
  test('A Worker with the middleware and without sluice.config.ts gets its bindings from a wrangler.jsonc, and reloads. A crash of the host of workerd stops the rest.', async () => {
    const source = (limit: number) => `import { rateLimiter } from 'sluice'
import { Hono } from 'hono'
const app = new Hono<{ Bindings: { NOTE: { text: string }; KV: any; DB: any; COUNTER: any; FILES: any; QUEUE: any } }>()
app.use(rateLimiter({ deadline: '10s', policies: [{ name: 'all', limit: ${limit}, window: '1h' }] }))
app.get('/', async (c) => {
  await c.env.KV.put('a', c.env.NOTE.text)
  await c.env.QUEUE.send('a message')
  const file = await (await c.env.FILES.fetch('http://a/file.txt')).text()
  const { two } = await c.env.DB.prepare('SELECT 1 + 1 AS two').first()
  const counter = c.env.COUNTER.get(c.env.COUNTER.idFromName('a'))
  return c.json([await c.env.KV.get('a'), two, await (await counter.fetch('http://a/')).text(), file])
})
export class Counter {
  fetch() {
    return new Response('object')
  }
}
export default { fetch: app.fetch, queue: ({ messages }: any) => console.log('got ' + messages[0].body) }
`
    await rename(path('wrangler.toml'), path('elsewhere'))
    await rm(path('sluice.config.ts'))
    await project.write('app/index.ts', source(2))
    await project.write('files/file.txt', 'a file')
    await project.write(
      'wrangler.jsonc',
      `{ "name": "shop", "main": "app/index.ts", "compatibility_date": "2026-10-01", // a comment
        "vars": { "NOTE": { "text": "hello" } }, "kv_namespaces": [{ "binding": "KV", "id": "kv" }],
        "d1_databases": [{ "binding": "DB", "database_name": "db", "database_id": "db" }],
        "durable_objects": { "bindings": [{ "name": "COUNTER", "class_name": "Counter" }] },
        "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Counter"] }],
        "assets": { "directory": "files", "binding": "FILES" },
        "queues": {
          "producers": [{ "binding": "QUEUE", "queue": "orders" }],
          "consumers": [{ "queue": "orders", "max_batch_timeout": 0 }]
        },
        "services": [{ "binding": "OTHER", "service": "other" }] }`,
    )
    try {
      const run = await project.dev()
      const get = async (ip: string) => {
        const response = await fetch(run.url, { headers: { 'CF-Connecting-IP': ip } })
        return `${response.status} ${response.headers.get('ratelimit-policy')}`
      }
      expect(run.output()).toContain('There is no sluice.config.ts')
      const response = await fetch(run.url, { headers: { 'CF-Connecting-IP': '192.0.2.9' } })
      expect(await response.json()).toEqual(['hello', 2, 'object', 'a file'])
      await expect.poll(run.output).toContain('got a message')
      expect(run.output()).toContain('The Worker runs without the bindings of services:')
      await get('192.0.2.1')
      await get('192.0.2.1')
      expect(await get('192.0.2.1')).toMatch(/^429 .*q=2;/)
      await project.write('app/index.ts', source(3))
      await expect.poll(run.output, { timeout: 20_000 }).toContain('Reloaded: the Worker.')
      expect(await get('192.0.2.2')).toMatch(/^200 .*q=3;/)
      await crash(run, 'the host of workerd')
    } finally {
      await rm(path('wrangler.jsonc'))
      await rename(path('elsewhere'), path('wrangler.toml'))
    }
  }, 60_000)

  test('A port in use is reported in one line.', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    expect(await project.refusedDev({ PORT: String(port) })).toBe(
      `port ${port} is in use. Choose another port: PORT=${port + 1} npx sluice dev`,
    )
    server.close()
  })

  test.each([
    ['sluice.config.ts', 'app/worker.ts:2:20: Could not resolve "../sluice.config"'],
    ['wrangler.toml', 'wrangler.jsonc: the file does not exist. To write one: npx sluice init'],
  ])('Without %s dev does not start, and names the remedy.', async (name, message) => {
    await rename(path(name), path('elsewhere'))
    expect(await project.refusedDev()).toBe(message)
    await rename(path('elsewhere'), path(name))
  })

  test('Without wrangler dev does not start, and names the remedy.', async () => {
    await rename(path('node_modules/wrangler'), path('elsewhere'))
    const { code, stderr } = await project.spawned(['dev'], { env: { PORT: '9' } })
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^\nCould not start: npx sluice dev needs wrangler: npm install --save-dev wrangler@\d+\.\d+\.\d+\n$/,
    )
    await rename(path('elsewhere'), path('node_modules/wrangler'))
  })
})

test.each([
  ['module', 0, /^✓ policies\n✓ bindings\n✓ namespace \(none\)\nJudged /],
  [
    'commonjs',
    1,
    /^✗ policies\nError: sluice\.config\.ts: Node loads this file as CommonJS\. Write "type": "module" into package\.json, or: npm install --save-dev wrangler@\S+\n/,
  ],
])(
  'Without wrangler, npx sluice check uses Node in a project of type %s.',
  async (type, code, output) => {
    await rename(path('node_modules/wrangler'), path('elsewhere'))
    await project.write('package.json', JSON.stringify({ type }))
    try {
      expect(await project.spawned(['check'])).toMatchObject({
        code,
        stdout: expect.stringMatching(output),
      })
    } finally {
      await rename(path('elsewhere'), path('node_modules/wrangler'))
      await project.write('package.json', PACKAGE)
    }
  },
)

test('npx sluice bridge runs scripts on a Redis of its own, and Ctrl-C leaves no process.', async () => {
  const child = project.start(['bridge', '--port', '0', '--token', 'a-token'])
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  try {
    await expect
      .poll(() => output, { timeout: 20_000 })
      .toContain('UPSTASH_REDIS_REST_TOKEN=a-token')
    const [, url] = /^UPSTASH_REDIS_REST_URL=(.*)$/m.exec(output)!
    const headers = { authorization: 'Bearer a-token' }
    const body = JSON.stringify(['EVAL', "return redis.call('INCR', KEYS[1])", 1, 'a'])
    expect(await (await fetch(url!, { method: 'POST', headers, body })).json()).toEqual({
      result: 1,
    })
    const family = processes(child.pid!)
    expect(family.length).toBeGreaterThan(1)
    child.kill('SIGINT')
    await waitUntilEnded(family)
  } finally {
    child.kill('SIGKILL')
  }
}, 60_000)
