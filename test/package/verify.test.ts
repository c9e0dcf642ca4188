/** `sluice verify` of the packed package, run as a new user would, against real servers. */
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect, onTestFinished, test } from 'vitest'
import { startFront } from '../support/front.ts'
import { read } from '../support/pages.ts'
import { type Consumer, createConsumer } from './support/consumer.ts'
import { listening } from './support/listening.ts'

const TOKEN = 'a-token-to-verify-with'

/** The configuration of an app, which has two policies. */
const config = (clientAddress: string) => `import { defineConfig } from 'sluice'
import { verify } from 'sluice/features'

export default defineConfig({
  clientAddress: ${clientAddress},
  deadline: '10s',
  policies: [
    { name: 'per-ip', algorithm: 'fixed-window', limit: 8, window: '1h' },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 4,
      window: '1h',
      match: { path: '/api/login', method: 'POST' },
    },
  ],
  use: [verify()],
})
`

/** A database, as the variables of a server. */
async function startDatabase(): Promise<Record<string, string>> {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  onTestFinished(() => bridge.close())
  return {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    SLUICE_VERIFY_TOKEN: TOKEN,
  }
}

/** Starts a program of a project. Returns its URL. */
async function serve(project: Consumer, command: string[], env: Record<string, string>) {
  const port = await freePort()
  const [name, ...args] = command
  const variables = { ...env, PORT: String(port) }
  const server = project.start(name!, args, variables)
  await listening(port, server)
  return `http://127.0.0.1:${port}`
}

/** The output of the command, which may find a problem. */
const verified = (project: Consumer, url: string) =>
  project
    .run('sluice', 'verify', url, '--token', TOKEN)
    .catch((error: Error) => error.message.replace(/^.*failed:\n/, ''))

/** The lines without numbers that differ from run to run. */
const plain = (output: string) =>
  output
    .trim()
    .replace(/[0-9a-f]{12}/, 'FINGERPRINT')
    .replace(/in \d+ ms/, 'in 1 ms')
    .replace(/within [\d.]+ s/, 'within 0.1 s')
    // A framework redirects from some spellings.
    .replace(/^([✓~] per-ip .*? was refused); the same as .*?(; Retry-After)/m, '$1$2')
    .replace(/Retry-After 3\d{3} s/g, 'Retry-After 3600 s')

const AT_MADE_UP =
  'No problem at paths that are made up. A route of the app may still answer before the limiter: name some with --path'

/** What the command prints about an app without a problem. */
const healthy = (
  address: string,
  spellings: string,
) => `~ per-ip         8 of 9 requests passed, the 9th was refused; Retry-After 3600 s (not waited for); as GET /, a path that is made up
✓ login          4 of 5 requests passed, the 5th was refused; the same as ${spellings}; Retry-After 3600 s (not waited for)
✓ shared         20 connections share one quota
✓ configuration  this folder's (fingerprint FINGERPRINT)
✓ store          answered in 1 ms; the fallback did not decide
✓ clock          within 0.1 s
✓ address        counts ${address}, and ignores a forged address
${AT_MADE_UP}`

const expressApp = (order: 'before' | 'after') => {
  const mount = 'app.use(rateLimiter(config))\n'
  return `import express from 'express'
import { rateLimiter } from 'sluice/node'
import config from './sluice.config.ts'

const app = express()
${order === 'before' ? mount : ''}app.get('/', (req, res) => res.send('Welcome.'))
app.post('/api/login', (req, res) => res.status(401).send('Wrong password.'))
${order === 'after' ? mount : ''}app.listen(Number(process.env.PORT), '127.0.0.1')
`
}

test('sluice verify proves an Express app, and finds a limiter that is mounted after the routes.', async () => {
  const project = await createConsumer({
    packages: ['express@5.3.0', 'node@24.21.0'],
    files: {
      'package.json': JSON.stringify({ type: 'module', allowScripts: { node: true } }),
      'sluice.config.ts': config("'socket'"),
      'right.ts': expressApp('before'),
      'wrong.ts': expressApp('after'),
    },
  })
  const env = await startDatabase()
  const right = await serve(project, ['node', 'right.ts'], env)
  expect(plain(await verified(project, right))).toBe(
    healthy('127.0.0.1', '//API/LOGIN/, /%61pi/login and /api/login;x=1'),
  )
  const wrong = await serve(project, ['node', 'wrong.ts'], env)
  const output = await verified(project, wrong)
  expect(output).toContain(
    '✗ per-ip         not limited: GET / answers 200 without Sluice. The app answers before the limiter: write app.use(rateLimiter(…)) above the routes',
  )
  expect(output).toMatch(/✗ login +not limited: POST \/api\/login answers 401 without Sluice/)
  expect(output).toMatch(/2 problems\s*$/)
})

const nextProxy = `import { rateLimitProxy } from 'sluice/next'
import limits from '@/sluice.config'

export const proxy = rateLimitProxy(limits)
export const config = { matcher: '/((?!_next/static|_next/image|favicon.ico).*)' }
`

test('sluice verify proves a Next.js app, and finds a proxy.ts that Next.js ignores.', async () => {
  const project = await createConsumer({
    packages: [
      ...['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1'],
      ...['typescript@5.9.3', '@types/node@24.19.2', '@types/react@19'],
    ],
    files: {
      'package.json': '{ "private": true, "type": "module" }',
      'sluice.config.ts': config('{ forwardedFor: { trustedProxies: 1 } }'),
      // Next.js reads the file beside the folder app, which is in src here.
      'proxy.ts': nextProxy,
      'tsconfig.json': JSON.stringify({ compilerOptions: { paths: { '@/*': ['./*'] } } }),
      'src/app/layout.tsx': `export default function Layout({ children }: { children: React.ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  )
}
`,
      'src/app/page.tsx': `export default function Page() {
  return <p>Welcome.</p>
}
`,
      'src/app/api/login/route.ts': `export const POST = () => new Response('Wrong password.', { status: 401 })
`,
    },
  })
  const env = await startDatabase()
  const start = async () => {
    await project.run('next', 'build')
    const app = await serve(project, ['next', 'start', '-H', '127.0.0.1'], env)
    return startFront({ to: () => app, adds: { 'x-forwarded-for': '203.0.113.9' } })
  }
  const ignored = await verified(project, await start())
  expect(ignored).toMatch(
    /✗ login +not limited: POST \/api\/login answers 401 without Sluice. Next.js does not run the limiter: the file must be proxy.ts/,
  )
  expect(ignored).toMatch(/2 problems\s*$/)
  await rm(join(project.folder, 'proxy.ts'))
  await writeFile(join(project.folder, 'src/proxy.ts'), nextProxy)
  expect(plain(await verified(project, await start()))).toBe(
    // Next.js redirects from the other one.
    healthy('203.0.113.9', '/%61pi/login and /api/login;x=1'),
  )
})

/** A wait is waited for, or is just too long for it. */
const withoutWaits = (output: string) => plain(output).replace(/(Retry-After) .*$/gm, '$1')

/** The run of the guide, without the line that needs `--origin`. */
const guide = /^\$ npx sluice verify [^\n]*\n(.*?)✗ origin/ms.exec(
  read('docs/guides/verify.md'),
)![1]!
const expectation = "expect: { request: { path: '/login', method: 'POST' }, atMost: 10, in: '1m' },"

test('sluice verify of the Worker of sluice dev prints what the guide shows.', async () => {
  // The project of init has another store.
  const config = read('sluice.config.ts')
    .replace(/^.*upstash.*\n/gim, '')
    .replace('./src/core/config/options.ts', 'sluice')
    .replace('policies:', `deadline: '10s',\n  ${expectation}\n  policies:`)
  const project = await createConsumer({ files: { '.dev.vars': `SLUICE_VERIFY_TOKEN=${TOKEN}\n` } })
  await project.run('sluice', 'init', '--no-install')
  await writeFile(join(project.folder, 'sluice.config.ts'), config)
  await project.npm('install', '--prefer-offline', '--no-audit', '--no-fund')
  // A Redis that was downloaded before.
  const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))
  await symlink(cache, join(project.folder, 'node_modules/.cache')).catch(() => {})
  const url = await serve(project, ['sluice', 'dev'], {})
  await expect
    .poll(async () => (await fetch(`${url}/_sluice/health`)).status, { timeout: 60_000 })
    .toBe(200)
  expect(withoutWaits(await verified(project, url))).toBe(`${withoutWaits(guide)}\nNo problem`)
})
