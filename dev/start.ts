/** `npm start`: a real Redis, the bridge, a demo origin, and the Worker in front of it, until Ctrl-C. */
import { createServer } from 'node:net'
import { variablesOf } from '../src/bindings.ts'
import type { ConfigOptions, PolicyOptions } from '../src/options.ts'
import { parseConfig } from '../src/policy.ts'
import { startBridge } from './bridge.ts'
import { startOrigin } from './origin.ts'
import { startRedis } from './redis.ts'
import { startDevWorker } from './wrangler-dev.ts'

/** On loopback only, and in the documentation. */
const GATE_TOKEN = 'dev-gate-token-0000'
const OPERATE_TOKEN = 'dev-operate-token-0000'

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

async function checkFree(port: number): Promise<void> {
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
  if (url && token) return { url, token, rows: [['Database', url, 'from UPSTASH_REDIS_REST_URL']] }
  if (url || token) {
    throw new Error('set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither')
  }
  const redis = await startRedis({ log: console.log })
  undo.push(() => redis.stop())
  redis.exited.then(({ lastLines }) => stop(1, `Stopped: Redis ended.\n${lastLines}`))
  const bridge = await startBridge({ redis: redis.url, token: 'local' })
  undo.push(() => bridge.close())
  const rows = [
    ['Redis', redis.url, redis.source],
    ['Bridge', bridge.url, "Upstash's REST API in front of it"],
  ]
  return { url: bridge.url, token: bridge.token, rows }
}

async function startDemoOrigin(): Promise<string> {
  const demo = await startOrigin()
  undo.push(() => demo.close())
  return demo.url
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
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]!.length)),
  )
  return rows
    .map((row) =>
      `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('   ')}`.trimEnd(),
    )
    .join('\n')
}

try {
  const { default: config } = (await import('../sluice.config.ts')) as { default: ConfigOptions }
  parseConfig(config) // also where defineConfig was left out
  const port = Number(process.env.PORT ?? 8787)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new Error(`PORT: expected a port number, got ${JSON.stringify(process.env.PORT)}`)
  }
  await checkFree(port)
  const database = await startDatabase()
  const origin = process.env.ORIGIN || (await startDemoOrigin())
  const { stores = [] } = config
  const variables = [undefined, ...stores].map((name) => {
    const { url, token } = variablesOf(name)
    return { [url]: database.url, [token]: database.token }
  })
  const worker = await startDevWorker(port, {
    ...Object.assign({}, ...variables),
    ...(stores.length > 0 && { SLUICE_SECRET: 'local' }),
    ORIGIN: origin,
    SLUICE_GATE_TOKEN: GATE_TOKEN,
    SLUICE_OPERATE_TOKEN: OPERATE_TOKEN,
  })
  undo.push(() => worker.stop())
  worker.ended.then((reason) => stop(1, `Stopped: ${reason}.`))

  const url = `http://127.0.0.1:${port}`
  const parts = [
    ['Worker', url, 'src/worker.ts in workerd; reloads when you edit sluice.config.ts'],
    ...database.rows,
    ...(stores.length > 0 ? [['Stores', stores.join(', '), 'all in that one database']] : []),
    ['Origin', origin, process.env.ORIGIN ? 'from ORIGIN' : 'a demo that echoes requests'],
  ]
  console.log(`
Sluice is up.

${table(parts)}

Policies (sluice.config.ts):

${table(config.policies.map(describePolicy)) || '  none'}

Try:

  curl -i ${url}/
  curl -i -X POST ${url}/login
  curl -s -o /dev/null -w '%{http_code} ' '${url}/?[1-12]'
  curl ${url}/_sluice/v1/decide -H 'Authorization: Bearer ${GATE_TOKEN}' -d '{"policy":"per-ip","key":"203.0.113.7"}'

Ctrl-C stops everything.
`)
} catch (error) {
  await stop(1, `Could not start: ${(error as Error).message}`)
}
