/**
 * Whatever spelling of a path a server takes for a route, Sluice counts or denies it. The servers are not installed by npm: on Debian,
 * `apt-get install nginx caddy haproxy php-cli golang-go python3-starlette python3-uvicorn python3-django`. Those that are not on this
 * machine are named in a warning. `test/unit/hosts/spellings.test.ts` has the routers that are always there.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from 'sluice-upstash-bridge'
import { describe, expect, onTestFinished, test } from 'vitest'
import { spelledValues } from '../../src/core/request/values.ts'
import { asParsed, asSent, client, compare, spellings } from '../support/spellings.ts'

interface Origin {
  /** Succeeds if the server is installed. */
  check: string[]
  file: string
  run: (file: string, port: number, folder: string) => string[]
}

const PYTHON = '/usr/bin/python3'
const origins: Record<string, Origin> = {
  nginx: {
    check: ['nginx', '-v'],
    file: 'nginx.conf',
    run: (file, _, folder) => ['nginx', '-p', folder, '-c', file, '-e', 'stderr'],
  },
  Caddy: {
    check: ['caddy', 'version'],
    file: 'Caddyfile',
    run: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
  HAProxy: {
    check: ['haproxy', '-v'],
    file: 'haproxy.cfg',
    run: (file) => ['haproxy', '-db', '-f', file],
  },
  PHP: {
    check: ['php', '-v'],
    file: 'app.php',
    run: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
  },
  Starlette: {
    check: [PYTHON, '-c', 'import starlette, uvicorn'],
    file: 'starlette_app.py',
    run: (file, port) => [PYTHON, file, `${port}`],
  },
  Django: {
    check: [PYTHON, '-c', 'import django'],
    file: 'django_app.py',
    run: (file, port) => [PYTHON, file, `${port}`],
  },
  Go: {
    check: ['go', 'version'],
    file: 'main.go',
    run: (file, port, folder) => {
      const binary = join(folder, 'origin')
      const { status, stderr } = spawnSync('go', ['build', '-o', binary, file], {
        encoding: 'utf8',
        env: { ...process.env, GOCACHE: join(folder, 'cache'), GO111MODULE: 'off' },
      })
      if (status !== 0) throw new Error(stderr)
      return [binary, `${port}`]
    },
  },
}

const isInstalled = ({ check: [program, ...args] }: Origin) =>
  spawnSync(program!, args, { stdio: 'ignore' }).status === 0

/** Runs a server until the test finishes. Returns its URL. */
async function start({ file, run }: Origin): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-origin-'))
  const port = await freePort()
  const source = fileURLToPath(new URL(`origins/${file}`, import.meta.url))
  const target = join(folder, file)
  await copyFile(source, target)
  const text = await readFile(target, 'utf8')
  await writeFile(target, text.replaceAll('FOLDER', folder).replaceAll('PORT', `${port}`))
  const [program, ...args] = run(target, port, folder)
  const child: ChildProcess = spawn(program!, args, {
    cwd: folder,
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: 'ignore',
  })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  await expect
    .poll(() =>
      fetch(`${url}/login`).then(
        (one) => one.status,
        () => 0,
      ),
    )
    .toBe(200)
  return url
}

const targets = spellings(10_000)
const [installed, missing] = [true, false].map((wanted) =>
  Object.entries(origins).filter(([, one]) => isInstalled(one) === wanted),
)
for (const [name] of missing!)
  console.warn(`SKIPPED: the spellings for ${name}, which is not installed.`)

describe.each(installed!)('%s', (_name, origin) => {
  test.each(Object.entries({ asSent, asParsed }))(
    'No spelling goes around a policy or a list, %s.',
    { timeout: 300_000 },
    async (_, way) => {
      const { ask, close } = client(await start(origin))
      onTestFinished(close)
      const { routed, wrong } = await compare(targets, way, ask)
      expect(wrong).toEqual([])
      expect(routed.login).toBeGreaterThan(1)
      expect(routed.admin).toBeGreaterThan(100)
    },
  )
})

test.runIf(isInstalled(origins.PHP!))(
  'Each name of a field that PHP reads as X-Asked is a spelling of it.',
  async () => {
    const url = await start(origins.PHP!)
    const names = [..."!#$%&'*+-.^_`|~"].map((mark) => `X${mark}Asked`)
    const read: string[] = []
    for (const name of names) {
      const headers = new Headers({ [name]: 'yes' })
      if ((await (await fetch(`${url}/none`, { headers })).text()) !== 'yes') continue
      read.push(name)
      expect(spelledValues(headers, 'x-asked'), name).toContain('yes')
    }
    expect(read).toEqual(expect.arrayContaining(['X-Asked', 'X_Asked', 'X.Asked']))
  },
)
