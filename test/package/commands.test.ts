/**
 * Types the commands of README.md, the tutorial and the guides into a shell, as a reader does, and compares the output with the one that
 * the page shows. A page is one session, from top to bottom, in a folder of its own. Blocks ```console session and ```sh session have the
 * commands. test/docs/commands.test.ts lists the commands that no test runs, with the reason.
 *
 * Ports are free ones of this machine, since sessions run at the same time. A written configuration has a longer deadline.
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { freePort, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { blocksOf, pageAt, pages, root } from '../support/pages.ts'
import { findInstalledProxies } from '../support/proxy-binaries.ts'
import { expectAnswer, expectText, isShown } from '../support/shown-output.ts'
import { consumerEnv, installConsumer } from './support/consumer.ts'
import { type Action, actionsOf } from './support/page-session.ts'
import { startRegistry } from './support/registry.ts'
import { openSession, type Session, until } from './support/session.ts'
import { type Setup, setups } from './support/setups.ts'

let registry: Awaited<ReturnType<typeof startRegistry>>
/** A project with the packed package, and with what the guides import and run. */
let installed: string

const { caddy } = await findInstalledProxies()

const PACKAGES = [
  ...['hono@4.13.19', 'wrangler@4.156.0', 'bun@1.4.5', 'deno@2.9.6'],
  ...['express@5.3.0', 'express-rate-limit@8.7.5'],
]

beforeAll(async () => {
  registry = await startRegistry(inject('tarball'))
  const manifest = { type: 'module', allowScripts: { bun: true, deno: true } }
  const files = { 'package.json': JSON.stringify(manifest) }
  installed = await installConsumer({ packages: PACKAGES, files })
  const modules = join(installed, 'node_modules')
  // A Redis that was downloaded before.
  await symlink(join(root, 'node_modules/.cache'), join(modules, '.cache')).catch(() => {})
  if (!caddy) return
  const { file, argv0, env } = caddy
  const variables = Object.entries(env).map(([name, value]) => `export ${name}='${value}'\n`)
  const program = `#!/bin/bash\n${variables.join('')}exec -a '${argv0}' '${file}' "$@"\n`
  await writeFile(join(modules, '.bin/caddy'), program, { mode: 0o755 })
}, 120_000)
afterAll(async () => {
  await registry?.close()
  if (installed) await rm(installed, { recursive: true, force: true })
})

test('Each page with a session has its setup, and the other way round.', () => {
  const all = pages.filter((page) => blocksOf(page).some(({ name }) => name === 'session'))
  expect(Object.keys(setups).sort()).toEqual(all.map(({ path }) => path).sort())
})

/** The ports that pages name. */
const PORTS = ['8787', '8080', '8079', '3000', '3001', '3002', '36161']

/** Changes the text of a page to what a session of it uses. */
type Adapt = (text: string) => string

const possible = Object.entries(setups).filter(([page]) => caddy || !page.endsWith('/caddy.md'))

test.concurrent.each(possible)(
  'The commands of %s print what the page shows.',
  async (page, setup) => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-page-')))
    const undo: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })]
    try {
      const free = await Promise.all(PORTS.map(() => freePort()))
      const adapt: Adapt = (text) =>
        text.replace(/\b\d{4,5}\b/g, (port) => String(free[PORTS.indexOf(port)] ?? port))
      const session = await open(folder, setup, adapt, undo)
      for (const action of actionsOf(pageAt(page), setup.writes)) {
        await act(session, action, adapt)
      }
    } finally {
      for (const step of undo.reverse()) await step()
    }
  },
)

/** Makes what a page takes for granted, and opens a shell in its folder. */
async function open(folder: string, setup: Setup, adapt: Adapt, undo: (() => unknown)[]) {
  const {
    isEmpty,
    isInitialized,
    files = {},
    env = {},
    apps = [],
    needsDatabase,
    before = [],
  } = setup
  if (!isEmpty) {
    await writeFile(join(folder, 'package.json'), '{ "name": "limiter", "type": "module" }')
    await symlink(join(installed, 'node_modules'), join(folder, 'node_modules'))
  }
  for (const port of apps) {
    const app = createServer((_, response) => response.end('Welcome.'))
    await once(app.listen(Number(adapt(port)), '127.0.0.1'), 'listening')
    undo.push(() => app.close())
  }
  const variables: NodeJS.ProcessEnv = {
    ...consumerEnv,
    // npm asks and reports nothing, and takes packages from its cache.
    ...{ npm_config_registry: registry.url, npm_config_prefer_offline: 'true' },
    ...{ npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false' },
    PATH: [join(installed, 'node_modules/.bin'), consumerEnv.PATH].join(delimiter),
    CADDY_ADMIN: `127.0.0.1:${await freePort()}`,
  }
  for (const [name, value] of Object.entries(env)) variables[name] = adapt(value)
  if (needsDatabase) {
    const redis = await startRedis()
    undo.push(() => redis.stop())
    const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
    undo.push(() => bridge.close())
    variables.UPSTASH_REDIS_REST_URL = bridge.url
    variables.UPSTASH_REDIS_REST_TOKEN = bridge.token
  }
  const session = await openSession(folder, variables)
  undo.push(() => session.close())
  const run = (command: string) => act(session, { do: 'run', command, shown: '', line: 0 }, adapt)
  if (isInitialized) await run('npx sluice init --no-install')
  for (const [name, text] of Object.entries(files)) await write(folder, name, adapt(text))
  for (const command of before) await run(command)
  return session
}

async function write(folder: string, name: string, text: string) {
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, lenient(text))
}

/** A configuration with a long deadline, so that a slow machine causes no store errors. */
const lenient = (code: string) =>
  code.includes('deadline') ? code : code.replace(/\bpolicies:/, "deadline: '10s',\n  policies:")

const CONFIG = 'sluice.config.ts'

async function act(session: Session, action: Action, adapt: Adapt): Promise<void> {
  const folder = await session.folder()
  const text = () => readFile(join(folder, CONFIG), 'utf8')
  if (action.do === 'write') return write(folder, action.file, adapt(action.code))
  if (action.do === 'compare') return expect(lenient(action.code)).toBe(await text())
  if (action.do === 'change') {
    expect(await text()).toContain(action.from)
    return write(folder, CONFIG, (await text()).replace(action.from, action.to))
  }
  if (action.do === 'see') return seen(session, action.shown)
  const command = adapt(action.command)
  // Each block is a client of its own, as if a window had passed.
  const own = command.includes('CF-Connecting-IP')
    ? ''
    : `header = "CF-Connecting-IP: 198.51.100.${action.line % 256}"\n`
  await writeFile(session.curlrc, `silent\nshow-error\n${own}`)
  const isWorker = /sluice dev|npm start/.test(command)
  const ended = await session.run(command, isWorker ? { PORT: adapt('8787') } : {})
  if (!ended) return seen(session, action.shown || (isWorker ? 'Sluice is running.' : ''))
  const { output, status } = ended
  // A page shows a failed check with its mark.
  if (status !== (/^✗/m.test(action.shown) ? 1 : 0)) {
    throw new Error(`${command}\nends with ${status}:\n${output}`)
  }
  if (/^npx sluice init\b/.test(command)) {
    const written = await readFile(join(await session.folder(), CONFIG), 'utf8').catch(() => '')
    if (written) await write(await session.folder(), CONFIG, written)
  }
  if (!action.shown.trim()) return
  if (!/^curl -i /.test(command)) return expectText(output, action.shown)
  const [, code, head, body] = /^HTTP\/1.1 (\d+).*?\r\n(.*?)\r\n\r\n(.*)$/s.exec(output)!
  const fields = new Headers(
    head!.split('\r\n').map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]),
  )
  const header = (name: string) => fields.get(name) ?? undefined
  expectAnswer({ status: Number(code), header, body: body! }, action.shown)
}

/** Waits until the last server has printed what a page shows. */
const seen = (session: Session, shown: string) =>
  until(
    async () => isShown(await session.printed(), shown),
    async () => `The server has printed:\n${await session.printed()}\nThe page shows:\n${shown}`,
  )
