/** The local stack: a Redis, the bridge, a demo origin, and the Worker of a project in front of it, until Ctrl-C. */
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { isOrigin } from '../../src/core/base/host.ts'
import { tokensIn } from '../../src/core/request/trusted-token.ts'
import { DASHBOARD_PORT, type DashboardOptions, startDashboard } from '../dashboard/server.ts'
import { UsageError } from '../options.ts'
import { paint, say } from '../paint.ts'
import { type MoreBindings, moreBindings } from '../project/bindings.ts'
import { needNode, needPosix } from '../project/node.ts'
import { installWrangler, wranglerIn } from '../project/tools.ts'
import { noFile, type WranglerConfig, wranglerFile } from '../project/wrangler-config.ts'
import { addresses, table, tries } from './banner.ts'
import type { Program } from './children.ts'
import { type Description, POLICY_COLUMNS } from './describe.ts'
import { answersHealth } from './health.ts'
import type { HostOptions } from './host.ts'
import { startOrigin } from './origin.ts'
import { startReloading } from './reload.ts'
import { readDevVars, variablesIn } from './variables.ts'
import { WORKER_NAME } from './workerd.ts'

/** Fixed tokens, which the documentation shows. The Worker listens on loopback only. */
const API_TOKEN = 'dev-api-token-0000'
const OPERATE_TOKEN = 'dev-operate-token-0000'
const PROXY_TOKEN = 'dev-proxy-token-0000'

/** What a stack has started. */
interface Parts {
  /** How to stop each part. */
  undo: (() => unknown)[]
  /** Stops all parts in reverse order, then ends the process. */
  stop(code: number, reason?: string): Promise<never>
}

function noParts(): Parts {
  const undo: Parts['undo'] = []
  let stopping = false
  return {
    undo,
    async stop(code, reason) {
      if (!stopping) {
        stopping = true
        if (reason) console.error(`\n${paint('red', reason, process.stderr)}`)
        for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => {})
        process.exit(code)
      }
      return new Promise(() => {})
    },
  }
}

function stopOnSignals({ stop }: Parts) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(0))
  process.on('uncaughtException', (error) => stop(1, `Stopped: ${error.message}`))
  process.on('unhandledRejection', (error) =>
    stop(1, `Stopped: ${(error as Error)?.message ?? error}`),
  )
}

async function checkFree(port: number, command: string): Promise<void> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve()))
  }).catch((error) => {
    throw new Error(
      error.code === 'EADDRINUSE'
        ? `port ${port} is in use. Choose another port: PORT=${port + 1} ${command}`
        : `port ${port} cannot be used (${error.code})`,
    )
  })
}

/** Sends one PING to a database. */
async function checkDatabase(url: string, token: string): Promise<void> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Error(
      `UPSTASH_REDIS_REST_URL: expected a URL like "https://name.upstash.io", got ${JSON.stringify(url)}`,
    )
  }
  const { ok, status } = await fetch(url, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: '["PING"]',
    signal: AbortSignal.timeout(10_000),
  }).catch(({ message, cause }: Error) => {
    const reason = (cause as Error | undefined)?.message ?? message
    throw new Error(`UPSTASH_REDIS_REST_URL: ${url} does not respond: ${reason}`)
  })
  if (status === 401 || status === 403) {
    throw new Error(`UPSTASH_REDIS_REST_TOKEN: ${url} answers ${status} to this token`)
  }
  if (!ok) throw new Error(`UPSTASH_REDIS_REST_URL: ${url} answers ${status} to a PING`)
}

/** Returns the database that the variables name, or starts a Redis and the bridge. */
async function startDatabase({ undo, stop }: Parts, variables: Record<string, string>) {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = variables
  if (url && token) {
    await checkDatabase(url, token)
    return { url, token, rows: [['Database', url, 'from UPSTASH_REDIS_REST_URL']] }
  }
  if (url || token) {
    throw new Error('set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither')
  }
  const redis = await startRedis({ log: console.log })
  undo.push(() => redis.stop())
  redis.exited.then(({ lastLines }) =>
    stop(1, `Stopped: Redis ended unexpectedly. Its last output:\n${lastLines}`),
  )
  const bridge = await startBridge({ redis: redis.url, token: 'local' })
  undo.push(() => bridge.close())
  const rows = [
    ['Redis', redis.url, redis.source],
    ['Bridge', bridge.url, 'serves the Upstash REST API from this Redis'],
  ]
  return { url: bridge.url, token: bridge.token, rows }
}

async function startDemoOrigin({ undo }: Parts): Promise<string> {
  const demo = await startOrigin()
  undo.push(() => demo.close())
  return demo.url
}

/** Starts the dashboard at its usual port, or at a free one. */
async function startDashboardNear(
  { undo }: Parts,
  options: Omit<DashboardOptions, 'port'>,
): Promise<string> {
  const dashboard = await startDashboard({ ...options, port: DASHBOARD_PORT }).catch(() =>
    startDashboard({ ...options, port: 0 }),
  )
  undo.push(() => dashboard.close())
  return dashboard.address
}

/** Checks the project before anything starts. */
function checkProject(project: string, command: string) {
  needPosix(command)
  needNode(22, command) // as wrangler does
  if (!existsSync(wranglerFile(project))) throw new Error(noFile(project))
  if (!wranglerIn(project))
    throw new Error(`${command} needs wrangler: ${installWrangler(project)}`)
}

const policiesText = ({ policies, judged }: Description) => `Policies (sluice.config.ts):

${policies.length > 0 ? table([POLICY_COLUMNS, ...policies]) : '  none'}

${judged}`

/** Adds the class of objects, and its binding. */
const withObjects = ({ bindings, config }: MoreBindings = { bindings: {}, config: {} }) => ({
  bindings: {
    ...bindings,
    SLUICE_SUBJECT: { type: 'durable-object', worker: WORKER_NAME, exportName: 'SluiceSubject' },
  },
  config: {
    ...config,
    exports: { ...config.exports, SluiceSubject: { type: 'durable-object', storage: 'sqlite' } },
  },
})

const today = () => new Date().toISOString().slice(0, 10)

export interface DevOptions {
  /** How the user calls this command, for messages: `npm start`. */
  command: string
  program: Program
  /** The port of the Worker. Defaults to the variable PORT, or 8787. */
  port?: number | undefined
}

/** @param name the option or the variable with the text */
export function portOf(name: string, text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 1 && port <= 65535) return port
  throw new UsageError(`${name}: expected a port number, got ${JSON.stringify(text)}`)
}

/** Runs the stack until Ctrl-C. Exits with 1 if it cannot start, or if a part ends by itself. */
export async function dev(options: DevOptions): Promise<void> {
  const parts = noParts()
  stopOnSignals(parts)
  try {
    await start(options, parts)
  } catch (error) {
    await parts.stop(1, `Could not start: ${(error as Error).message}`)
  }
}

async function start(
  { command, program, port = portOf('PORT', process.env.PORT ?? '8787') }: DevOptions,
  parts: Parts,
): Promise<void> {
  const { project } = program
  const devVars = join(project, '.dev.vars')
  const configured = existsSync(join(project, 'sluice.config.ts'))
  await checkFree(port, command)
  checkProject(project, command)
  const given = { ...(await readDevVars(devVars)), ...variablesIn(process.env) }
  if (given.ORIGIN && !isOrigin(given.ORIGIN)) {
    throw new Error(
      `ORIGIN: expected a URL like "http://127.0.0.1:3000", got ${JSON.stringify(given.ORIGIN)}`,
    )
  }
  let database: Awaited<ReturnType<typeof startDatabase>> | undefined
  const origin = given.ORIGIN || (await startDemoOrigin(parts))
  let missing: string[] = []
  let unsupported: string[] = []
  let findings: Description['findings'] = []
  let operateToken = OPERATE_TOKEN
  /** True if a database counts, and not Durable Objects. */
  let counting: boolean | undefined

  /** Collects the bindings of the Worker. The environment overrides .dev.vars, which overrides the defaults, then wrangler.toml. */
  async function runtime(
    { variables, hasDatabase, ...description }: Description,
    wrangler: WranglerConfig,
  ): Promise<HostOptions> {
    const { vars, kv, ratelimits, compatibilityDate, compatibilityFlags } = wrangler
    const given = { ...(await readDevVars(devVars)), ...variablesIn(process.env, variables) }
    unsupported = wrangler.unsupported
    findings = description.findings
    operateToken = tokensIn(given.SLUICE_OPERATE_TOKEN)[0] ?? OPERATE_TOKEN
    const found = wrangler.hasMore ? await moreBindings(project, WORKER_NAME) : undefined
    const more = program.objects ? withObjects(found) : found
    missing = variables.filter((name) => !(name in given) && !(name in vars))
    const isDatabase = hasDatabase && !program.objects
    if (isDatabase) database ??= await startDatabase(parts, given)
    if (counting !== undefined && counting !== isDatabase) {
      const store = isDatabase ? `Redis (${database!.rows[0]![1]})` : 'Durable Objects'
      console.log(`The store is now ${store}: all quotas start anew.`)
    }
    counting = isDatabase
    return {
      project,
      runtime: { compatibilityDate: compatibilityDate ?? today(), compatibilityFlags },
      env: {
        ...vars,
        ...(!database && { SLUICE_SECRET: 'local' }),
        SLUICE_DEV: 'true',
        SLUICE_API_TOKEN: API_TOKEN,
        SLUICE_OPERATE_TOKEN: OPERATE_TOKEN,
        SLUICE_PROXY_TOKEN: PROXY_TOKEN,
        ...(database && {
          UPSTASH_REDIS_REST_URL: database.url,
          UPSTASH_REDIS_REST_TOKEN: database.token,
        }),
        ...given,
        ORIGIN: given.ORIGIN || origin,
      },
      // The ids and the folder that `wrangler kv key put --local` uses.
      kv: Object.fromEntries(kv.map(({ binding, id }) => [binding, id ?? binding])),
      ...((kv.length > 0 || more) && { persist: join(project, '.wrangler/state/v3') }),
      ...(more && { more }),
      ratelimits: Object.fromEntries(ratelimits.map(({ name, simple }) => [name, simple])),
    }
  }

  const worker = await startReloading({ port, program, configured, runtime, log: console.log })
  parts.undo.push(() => worker.stop())
  worker.ended.then((reason) => parts.stop(1, `Stopped: ${reason}.`))

  const { description } = worker
  const url = `http://127.0.0.1:${port}`
  const hasEndpoints = await answersHealth(url)
  const dashboard = hasEndpoints
    ? await startDashboardNear(parts, {
        url,
        token: () => operateToken,
        ...(configured && { findings: () => ({ file: 'sluice.config.ts', list: findings }) }),
      })
    : "write use: [endpoints()], with endpoints from 'sluice/features'"
  const rows = [
    [
      'Worker',
      url,
      `send requests here; reloads when you edit ${configured ? 'sluice.config.ts' : 'the source'}`,
    ],
    [
      'Dashboard',
      dashboard,
      hasEndpoints
        ? 'shows live what the Worker admits and refuses'
        : 'the Worker answers no paths under /_sluice/',
    ],
    ...(database?.rows ?? [
      ['Objects', 'SluiceSubject', 'a Durable Object counts for each client'],
    ]),
    ['Origin', origin, given.ORIGIN ? 'from ORIGIN' : 'a demo app that echoes requests'],
  ]
  const tokens = {
    api: given.SLUICE_API_TOKEN ? '$SLUICE_API_TOKEN' : API_TOKEN,
    operate: given.SLUICE_OPERATE_TOKEN ? '$SLUICE_OPERATE_TOKEN' : OPERATE_TOKEN,
  }
  const notes = missing.map(
    (name) =>
      `The variable ${name} is not set. Add it to .dev.vars, or start with: ${name}=… ${command}\n\n`,
  )
  if (unsupported.length > 0) {
    const fields = unsupported.join(', ')
    notes.push(
      `The Worker runs without the bindings of ${fields}: ${command} does not provide them.\n\n`,
    )
  }
  say(`
Sluice is running.

${addresses(rows)}

${configured ? policiesText(description) : 'There is no sluice.config.ts: the Worker contains its policies.'}

Requests to try:

${tries(hasEndpoints ? description : { ...description, ask: undefined }, url, tokens)}

${notes.join('')}Ctrl-C stops everything.
`)
}
