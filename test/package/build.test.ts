/** `sluice build` in projects: what is built decides in each bundler and runtime, and a stale module is an error. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

/** A configuration that imports another file, reads `process.env`, and has a function. */
const CONFIG = `import { defineConfig } from 'sluice'
import { limit } from './limits.ts'

export default defineConfig({
  unconfigured: 'local',
  clientAddress: { header: 'x-real-ip', trustedProxies: 1 },
  policies: [
    { name: process.env.POLICY ?? 'mine', limit, window: '1h', key: (c: unknown) => String(c).length > 0 ? 'one' : '' },
  ],
})
`

const WORKER = `import { Hono } from 'hono'
import config, { rateLimiter } from '../sluice.built.ts'
export default new Hono().use(rateLimiter(config)).get('/', (c) => c.text('Welcome.'))
`

/** Sends three requests to what a bundle exports, in Node or Bun. */
const CALLER = `const { default: app } = await import(process.argv[2])
const statuses = []
for (let n = 0; n < 3; n += 1) {
  const request = new Request('http://localhost/', { headers: { 'x-real-ip': '192.0.2.1' } })
  statuses.push((await app.fetch(request, {})).status)
}
console.log(statuses.join())
`

const SERVER = `import { createServer } from 'node:http'
import { rateLimiter } from 'sluice/built/node'
import config from './sluice.built.ts'
const limit = rateLimiter(config)
const server = createServer(async (request, response) => {
  if (await limit(request, response)) response.end('Welcome.')
})
server.listen(0, '127.0.0.1', async () => {
  const statuses = []
  for (let n = 0; n < 3; n += 1)
    statuses.push((await fetch('http://127.0.0.1:' + server.address().port)).status)
  console.log(statuses.join())
  server.close()
})
`

const PROXY = `import { rateLimitProxy } from 'sluice/built/next'
import config from './sluice.built.ts'
const proxy = rateLimitProxy(config)
export default { fetch: (request: Request) => proxy(request, { waitUntil() {} }) }
`

/** Limits by name and key, in a folder beside. */
const LIMITS = `import type { LimitsConfig } from 'sluice/limits'
export default {
  unconfigured: 'local',
  limits: { invites: { limit: 2, window: '1h' }, api: { limit: 9, window: '1s', wait: '1s' } },
} satisfies LimitsConfig
`

const QUOTA = `import config, { limits } from './sluice.built.ts'
const quota = limits(config)
// @ts-expect-error: there is no such limit
const wrong: () => Promise<unknown> = () => quota.limit('other', 'ann')
export const rejected = wrong().catch(String)
export default {
  async fetch() {
    const { allowed } = await quota.limit('invites', 'ann')
    return new Response('', { status: allowed ? 200 : 429 })
  },
}
`

test('A built configuration decides in a Worker, with Vite, in Next.js, Node and Bun.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'wrangler@4.156.0', 'vite@8.4.0', 'bun@1.4.5', 'typescript@7.0.2'],
    files: {
      'package.json': '{ "name": "built", "type": "module" }',
      'wrangler.jsonc': `{
  "name": "built",
  "main": "src/worker.ts",
  "compatibility_date": "2026-10-01",
  "compatibility_flags": ["nodejs_compat"],
  "vars": { "POLICY": "of-the-build" },
  "build": { "command": "npx sluice build", "watch_dir": "sluice.config.ts" }
}
`,
      'sluice.config.ts': CONFIG,
      'limits.ts': 'export const limit = 2\n',
      'src/worker.ts': WORKER,
      'server.ts': SERVER,
      'proxy.ts': PROXY,
      'call.mjs': CALLER,
      'quota/sluice.config.ts': LIMITS,
      'quota/quota.ts': QUOTA,
    },
  })
  const { folder, run, node } = project
  const file = (name: string) => join(folder, name)

  // The command runs before the bundle, which has no schema.
  await run('wrangler', 'deploy', '--dry-run', '--minify', '--outdir', file('out'))
  const worker = await readFile(file('out/worker.js'), 'utf8')
  expect(worker).not.toContain('valibot')
  expect(await node('call.mjs', './out/worker.js')).toBe('200,200,429\n')
  await run('vite', 'build', '--ssr', 'src/worker.ts', '--outDir', 'vite', '--logLevel', 'error')
  const [bundle] = await readdir(file('vite'))
  expect(await node('call.mjs', `./vite/${bundle}`)).toBe('200,200,429\n')
  expect(await node('server.ts')).toBe('200,200,429\n')
  expect(await node('call.mjs', './proxy.ts')).toBe('200,200,429\n')
  expect(await run('bun', 'call.mjs', './src/worker.ts')).toBe('200,200,429\n')

  await run('sluice', 'build', '--config', 'quota/sluice.config.ts')
  expect(await node('call.mjs', './quota/quota.ts')).toBe('200,200,429\n')
  const options = '--noEmit --strict --target es2022 --module esnext --moduleResolution bundler'
  const more = ['--allowImportingTsExtensions', '--skipLibCheck', 'quota/quota.ts']
  expect(await run('tsc', ...options.split(' '), ...more)).toBe('')
  expect(await run('sluice', 'check', '--config', 'quota/sluice.config.ts')).toContain(
    '✓ build\nJudged as limits by name and key',
  )

  // A change of an imported file makes the module stale.
  await writeFile(file('limits.ts'), 'export const limit = 1\n')
  await expect(run('sluice', 'check')).rejects.toThrow(/✗ build\n.*Run: npx sluice build/)
  await expect(node('call.mjs', './proxy.ts')).rejects.toThrow(/Run: npx sluice build/)
})

test('wrangler dev builds the configuration, and answers by it after each change.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'wrangler@4.156.0'],
    files: {
      'package.json': '{ "name": "built", "type": "module" }',
      'wrangler.jsonc': `{
  "name": "built",
  "main": "src/worker.ts",
  "compatibility_date": "2026-10-01",
  "build": { "command": "npx sluice build", "watch_dir": "sluice.config.ts" }
}
`,
      'sluice.config.ts': written(2),
      'src/worker.ts': WORKER,
    },
  })
  const port = String(await freePort())
  const started = project.start('wrangler', ['dev', '--port', port, '--inspector-port', '0'], {})
  /** How many requests the Worker admits until it refuses one; `undefined` before it listens. */
  const admitted = async () => {
    for (let count = 0; ; count += 1) {
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)
      if (response?.status !== 200) return response && count
    }
  }
  const expectLimit = (limit: number) =>
    Promise.race([started.exited, expect.poll(admitted, { timeout: 60_000 }).toBe(limit)])
  await expectLimit(2)
  await writeFile(join(project.folder, 'sluice.config.ts'), written(7))
  await expectLimit(7)
})

const written = (limit: number) => `export default {
  unconfigured: 'local' as const,
  clientAddress: 'cloudflare' as const,
  policies: [{ name: 'mine', limit: ${limit}, window: '1h' as const }],
}
`
