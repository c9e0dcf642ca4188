/** Errors of startSluice, and what stop leaves behind. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Hono } from 'hono'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startSluice } from '../../../src/testing/start.ts'
import { root } from '../../support/pages.ts'

const app = new Hono().get('/', (c) => c.text('ok'))
const entry = JSON.stringify(new URL('../../../src/testing/start.ts', import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-start-')))
})
afterEach(() => rm(folder, { recursive: true }))

/** wrangler needs seconds to build a Worker, and more on a busy machine. */
const SLOW_MS = 90_000

const write = async (name: string, text: string) => {
  await writeFile(join(folder, name), text)
  return join(folder, name)
}
const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error: Error) => error.message,
  )

/** The direct children of this process, without those that have ended and that Node is about to collect. */
function children(): string[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' })
  return lines.split('\n').filter((line) => {
    const [, parent, command] = line.trim().split(/\s+/)
    return Number(parent) === process.pid && command !== 'ps' && !line.includes('<defunct>')
  })
}

/** Runs a module with Node in the folder, without vitest. */
async function runNode(code: string) {
  const args = ['--input-type=module', '-e', `import { startSluice } from ${entry}\n${code}`]
  return promisify(execFile)(process.execPath, args, { cwd: folder, timeout: 60_000 }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr, killed }) => `${killed ? 'does not end\n' : ''}${stdout}${stderr}`,
  )
}

test(
  'When the process of a test is killed, no process and no file stays.',
  async () => {
    await write('worker.js', 'export default { fetch: () => new Response() }')
    const code = `
      import { execFileSync } from 'node:child_process'
      import { startSluice } from ${entry}
      process.chdir(${JSON.stringify(process.cwd())})
      const sluice = await startSluice({ worker: { main: ${JSON.stringify(join(folder, 'worker.js'))} } })
      await sluice.flush()
      console.log(execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' }))
      setInterval(() => {}, 1000)`
    const tmp = join(folder, 'tmp')
    await mkdir(tmp)
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      env: { ...process.env, TMPDIR: tmp, VITEST: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [output] = await once(child.stdout, 'data')
    child.kill('SIGKILL')
    const pids = String(output)
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, parent, command]) => Number(parent) === child.pid && command !== 'ps')
    expect(pids.map(([, , command]) => command).join('\n')).toMatch(/workerd/)
    const isRunning = ([pid]: string[]) => {
      try {
        return process.kill(Number(pid), 0)
      } catch {
        return false
      }
    }
    await expect.poll(() => pids.filter(isRunning)).toEqual([])
    const files = async () => (await readdir(tmp)).filter((name) => /sluice|miniflare/.test(name))
    await expect.poll(files).toEqual([])
  },
  SLOW_MS,
)

test('The stop waits for work that the app has left in the background.', async () => {
  let isDone = false
  const sluice = await startSluice({
    app: {
      fetch(_request, _env, ctx) {
        ctx.waitUntil(
          new Promise((resolve) => setTimeout(resolve, 100)).then(() => {
            isDone = true
          }),
        )
        return new Response('ok')
      },
    },
  })
  await sluice.fetch('/')
  await sluice.stop()
  expect(isDone).toBe(true)
})

test(
  'A program ends by itself after the stop, with plain Node and, without a wrangler configuration, with the newest compatibility date.',
  async () => {
    const main = await write(
      'worker.mjs',
      'export default { fetch: () => Response.json([Date.now(), typeof WeakRef]) }',
    )
    const project = JSON.stringify(process.cwd())
    const output = await runNode(`
    process.chdir(${project})
    const sluice = await startSluice({ worker: { main: ${JSON.stringify(main)} } })
    await sluice.advance('1d')
    const { status, headers } = await sluice.fetch('/')
    const [now, weak] = await (await sluice.fetch('/')).json()
    await sluice.stop()
    console.log(status, now - Date.now() > 86_300_000, weak)
  `)
    expect(output).toBe('200 true function\n')
  },
  SLOW_MS,
)

test('A missing wrangler and a Worker without a main file are reported.', async () => {
  await write('worker.js', 'export default {}')
  const code = `
    for (const worker of [{ main: 'worker.js' }, {}]) {
      await startSluice({ worker }).catch((error) => console.log(error.message))
    }`
  expect((await runNode(code)).trim().split('\n')).toEqual([
    'sluice/testing needs wrangler: add it to the devDependencies of the project',
    `worker: expected main, the file of the Worker, because there is no wrangler.jsonc, wrangler.json, wrangler.toml in ${folder} or above it`,
  ])
})

test('Errors of the options are reported, and nothing is left running.', async () => {
  const before = { children: children(), Date }
  const missing = join(folder, 'missing.ts')
  const main = await write('worker.js', 'export default { fetch: () => new Response() }')
  const start = (options: object) => errorOf(startSluice(options))
  expect(await start({ app, worker: { main } })).toBe(
    'startSluice: expected either worker or app, got both',
  )
  expect(await start({ app: {} })).toBe(
    'app: expected an object with a function fetch, such as a Hono app',
  )
  expect(await start({ worker: { main: missing } })).toBe(
    `worker.main: the file ${missing} does not exist`,
  )
  expect(await start({ worker: { main, wranglerConfig: missing } })).toBe(
    `worker.wranglerConfig: the file ${missing} does not exist`,
  )
  expect({ children: children(), Date }).toEqual(before)
})

test('An invalid address or duration is reported.', async () => {
  await using sluice = await startSluice({ app })
  for (const ip of ['1.2.3', 'localhost', '', '192.0.2.1, 192.0.2.2']) {
    expect(await errorOf(sluice.fetch('/', { ip }))).toBe(
      `ip: expected an IPv4 or IPv6 address such as '203.0.113.7', got ${JSON.stringify(ip)}`,
    )
  }
  for (const duration of ['-1h', '1y', Number.NaN, 1.5, 10n, {}]) {
    const got = typeof duration === 'string' ? JSON.stringify(duration) : String(duration)
    expect(await errorOf(sluice.advance(duration as never))).toMatch(
      `advance: expected a duration such as '1h', or a whole number of milliseconds of at least 1, got ${got}.`,
    )
  }
  expect((await sluice.fetch('/', { ip: '2001:db8::1' })).status).toBe(200)
})

test.each([
  [
    'an invalid wrangler configuration',
    'compatibility_date = 5',
    'export default { fetch: () => new Response() }',
    /^worker: wrangler cannot build \S*worker\.js:\n.*"compatibility_date" to be of type string/s,
  ],
  [
    'a missing import',
    'compatibility_date = "2026-10-01"',
    "import './no-such-file.js'\nexport default {}",
    /^worker: wrangler cannot build \S*worker\.js:\n.*no-such-file\.js/s,
  ],
  [
    'an exception at the start of the Worker',
    'compatibility_date = "2026-10-01"',
    "throw new Error('a mistake')\nexport default {}",
    /^worker: the Worker does not start: Error: a mistake/,
  ],
])(
  'The error for %s is clear, and nothing is left running.',
  async (_, config, code, message) => {
    const before = children()
    await write('wrangler.toml', `name = "worker"\n${config}\n`)
    const main = await write('worker.js', code)
    const error = await errorOf(startSluice({ worker: { main } }))
    expect(error).toMatch(message)
    expect(error).not.toContain('\u001b') // colours
    await expect.poll(children).toEqual(before)
  },
  SLOW_MS,
)

test(
  'The error for an invalid configuration lists its problems, and nothing else.',
  async () => {
    await write('wrangler.toml', 'name = "worker"\ncompatibility_date = "2026-10-01"\n')
    const policies =
      "[{ name: 'a', limit: 'x', window: '1m' }, { name: 'b', limit: 1, window: 'y' }]"
    const main = await write(
      'worker.js',
      `import { createGateway } from '${root}src/index.ts'
export default createGateway({ origin: 'zone', policies: ${policies} })`,
    )
    const error: Error = await startSluice({ worker: { main } }).then(
      () => expect.unreachable(),
      (reason) => reason,
    )
    expect(error.message).toMatch(
      /^worker: the Worker does not start: ConfigError: 2 problems\n {2}policies\[0\]\.limit: .*\n {2}policies\[1\]\.window: .*$/,
    )
    // Vitest would print the advice of Miniflare below it.
    expect(error.cause).toBeUndefined()
  },
  SLOW_MS,
)

test(
  'The variables, bindings and services of the wrangler configuration apply, those of the test override them, and a service that does not run here answers 503. The stop ends every process and restores Date.',
  async () => {
    const before = children()
    const clock = { Date, now: Date.now }
    await write(
      'wrangler.toml',
      `name = "worker"
main = "src.js"
compatibility_date = "2026-10-01"
kv_namespaces = [{ binding = "KV", id = "any" }]
vars = { ONE = "file", TWO = "file", UPSTASH_REDIS_REST_URL = "https://production.example.com" }
services = [
  { binding = "SELF", service = "worker", entrypoint = "Named" },
  { binding = "OTHER", service = "other" },
]
[[rules]]
type = "Text"
globs = ["**/*.txt"]
`,
    )
    await write('note.txt', 'a text module')
    const worker = { wranglerConfig: join(folder, 'wrangler.toml') }
    await write(
      'src.js',
      `import { WorkerEntrypoint } from 'cloudflare:workers'
import note from './note.txt'
export class Named extends WorkerEntrypoint {
  now() {
    return Date.now()
  }
}
export default {
  async fetch(request, env) {
    await env.KV.put('key', 'kept')
    const { ONE, TWO, UPSTASH_REDIS_REST_URL: url } = env
    const { status } = await env.OTHER.fetch(request.clone())
    const kv = await env.KV.get('key')
    return Response.json({ ONE, TWO, url, note, kv, status, now: await env.SELF.now() })
  },
}`,
    )
    const inProcess = await startSluice({ app })
    const sluice = await startSluice({ worker, env: { TWO: 'test' } })
    expect(children().join('\n')).toMatch(/workerd/)
    expect(children().join('\n')).toMatch(/redis-server|valkey-server/)
    expect(Date).not.toBe(clock.Date)
    await sluice.advance('1d')
    const answer = (await (await sluice.fetch('/')).json()) as { now: number }
    expect(answer).toEqual({
      ONE: 'file',
      TWO: 'test',
      url: sluice.env.UPSTASH_REDIS_REST_URL,
      note: 'a text module',
      kv: 'kept',
      status: 503,
      now: expect.any(Number),
    })
    expect(sluice.now() - answer.now).toBeLessThan(60_000)
    await Promise.all([inProcess.stop(), sluice.stop()])
    expect({ Date, now: Date.now }).toEqual(clock)
    await expect.poll(children).toEqual(before)
  },
  SLOW_MS,
)
