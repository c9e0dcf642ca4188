/** `npm start`: a real Redis, the bridge, a demo origin, and the Worker in front of it, until Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ConfigOptions, PolicyOptions } from '../src/policy.ts'
import { startBridge } from './bridge.ts'
import { wrangler } from './build.ts'
import { startOrigin } from './origin.ts'
import { startRedis } from './redis.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const undo: (() => unknown)[] = []
let stopping = false

/** Stops what was started, last first, and ends. */
async function stop(code: number, reason?: string): Promise<never> {
  if (!stopping) {
    stopping = true
    if (reason) console.error(`\n${reason}`)
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => {})
    process.exit(code)
  }
  return new Promise(() => {})
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(0))
process.on('uncaughtException', (error) => stop(1, `Stopped: ${error.message}`))
process.on('unhandledRejection', (error) =>
  stop(1, `Stopped: ${(error as Error)?.message ?? error}`),
)

async function freePort(port: number): Promise<void> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve()))
  }).catch((error) => {
    throw new Error(
      error.code === 'EADDRINUSE'
        ? `port ${port} is busy. Choose another: PORT=${port + 1} npm start`
        : `port ${port} cannot be used (${error.code})`,
    )
  })
}

/** The database: the one the environment names, or a Redis of our own behind the bridge. */
async function startDatabase() {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = process.env
  if (url && token) return { url, token, lines: [['Database', url, 'from UPSTASH_REDIS_REST_URL']] }
  if (url || token) {
    throw new Error('set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither')
  }
  const redis = await startRedis({ log: console.log })
  undo.push(() => redis.stop())
  redis.exited.then(({ lastLines }) => stop(1, `Stopped: Redis ended.\n${lastLines}`))
  const bridge = await startBridge({ redis: redis.url, token: 'local' })
  undo.push(() => bridge.close())
  return {
    url: bridge.url,
    token: bridge.token,
    lines: [
      ['Redis', redis.url, redis.source],
      ['Bridge', bridge.url, "Upstash's REST API in front of it"],
    ],
  }
}

/** `wrangler dev` on the Worker, which reloads it whenever a source or the configuration changes. */
async function startWorker(port: number, variables: Record<string, string>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  undo.push(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'vars')
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  await writeFile(file, lines.join('\n'), { mode: 0o600 })

  const flags = ['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', '0']
  const child = spawn(
    process.execPath,
    [
      wrangler,
      'dev',
      ...flags,
      '--env-file',
      file,
      '--log-level',
      'warn',
      '--show-interactive-dev-session=false',
    ],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
      detached: true, // Ctrl-C reaches us; we stop the rest in order
    },
  )
  undo.push(() => end(child))
  child.once('exit', (code) => stop(1, `Stopped: the Worker ended (${code}).`))

  const deadline = Date.now() + 60_000
  for (;;) {
    const health = await fetch(`http://127.0.0.1:${port}/_sluice/health`).catch(() => undefined)
    if (health?.ok) return
    if (Date.now() > deadline) throw new Error('the Worker did not start within a minute')
    await sleep(100)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  process.kill(-child.pid!, 'SIGTERM')
  await Promise.race([gone, sleep(3000)])
  if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
}

function describePolicy({
  name,
  algorithm = 'sliding-window',
  limit,
  window,
  match = {},
}: PolicyOptions) {
  const methods = [match.method ?? []].flat().join(', ')
  const where = [...[match.host ?? []].flat(), ...[match.path ?? []].flat()].join(', ')
  const span = typeof window === 'number' ? `${window}ms` : window
  return [name, `${limit} in ${span}`, algorithm, `${methods} ${where}`.trim() || 'every request']
}

/** Rows as columns, indented. */
function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) =>
      `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('   ')}`.trimEnd(),
    )
    .join('\n')
}

try {
  const { default: config } = (await import('../sluice.config.ts')) as { default: ConfigOptions }
  const port = Number(process.env.PORT ?? 8787)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new Error(`PORT: expected a port number, got ${JSON.stringify(process.env.PORT)}`)
  }
  await freePort(port)
  const database = await startDatabase()
  let origin = process.env.ORIGIN
  if (!origin) {
    const demo = await startOrigin()
    undo.push(() => demo.close())
    origin = demo.url
  }
  await startWorker(port, {
    ORIGIN: origin,
    UPSTASH_REDIS_REST_URL: database.url,
    UPSTASH_REDIS_REST_TOKEN: database.token,
  })

  const url = `http://127.0.0.1:${port}`
  const parts = [
    ['Worker', url, 'src/worker.ts in workerd; reloads when you edit sluice.config.ts'],
    ...database.lines,
    ['Origin', origin, process.env.ORIGIN ? 'from ORIGIN' : 'a demo that echoes requests'],
  ]
  console.log(`
Sluice is up.

${table(parts)}

Policies (sluice.config.ts):

${table(config.policies.map(describePolicy))}

Try:

  curl -i ${url}/
  curl -s -o /dev/null -w '%{http_code} ' '${url}/?[1-12]'
  curl -i -X POST ${url}/login

Ctrl-C stops everything.
`)
} catch (error) {
  await stop(1, `Could not start: ${(error as Error).message}`)
}
