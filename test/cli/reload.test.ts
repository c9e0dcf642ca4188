/** The reloading of `npm start` and `npx sluice dev`, in this process, with a Worker that shows its limit. */
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ReloadingWorker, startReloading } from '../../cli/dev/reload.ts'
import { root } from '../support/dev-command.ts'
import { packageFolder } from '../support/sluice-package.ts'

const withLimit = (limit: number | string) =>
  `export default { policies: [{ name: 'per-ip', limit: ${limit}, window: '10s' }] }\n`
/** Responds after the end of the request. */
const WORKER = `import config from '../sluice.config.ts'
export default {
  async fetch(request: Request, env: { TEXT?: string }) {
    await request.text()
    return new Response(config.policies[0].limit + (env.TEXT ?? ''))
  },
}
`
const TOML = 'name = "shop"\nmain = "src/worker.ts"\ncompatibility_date = "2026-10-01"\n'

let folder: string
let url: string
let worker: ReloadingWorker
const lines: string[] = []

/** Writes at once, since a busy machine may read a file between the steps of an asynchronous write. */
const write = async (name: string, content: string) => {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), content)
}
const save = (content: string, name = 'sluice.config.ts') => write(name, content)
const start = async (port: number, meanwhile?: () => void) =>
  startReloading({
    port,
    program: { file: join(packageFolder, 'dist/cli.js'), project: folder, check: 'npm run check' },
    configured: true,
    async runtime(_, { vars, compatibilityDate }) {
      meanwhile?.()
      return {
        project: folder,
        runtime: { compatibilityDate: compatibilityDate!, compatibilityFlags: [] },
        env: vars,
      }
    },
    log: (line) => lines.push(line),
  })

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-reload-')))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await write('package.json', '{ "type": "module" }')
  await write('wrangler.toml', TOML)
  await write('src/worker.ts', WORKER)
  await save(withLimit(10))
  const port = await freePort()
  url = `http://127.0.0.1:${port}/`
  worker = await start(port)
}, 120_000)
afterAll(async () => {
  await worker?.stop()
  await rm(folder, { recursive: true })
})

const get = async () => (await fetch(url, { signal: AbortSignal.timeout(10_000) })).text()
const active = async () => Number.parseInt(await get(), 10)

/** Where the lines of the next step begin. */
let read = 0

/** Makes a change, and expects one line for it, and the limit in responses. A second line fails the next step. */
async function step(change: () => Promise<unknown>, line: RegExp, limit: number) {
  await change()
  await expect.poll(() => lines.length, { timeout: 20_000 }).toBeGreaterThan(read)
  expect(lines.slice(read)).toEqual([expect.stringMatching(line)])
  read += 1
  expect(await active()).toBe(limit)
}
const RELOADED = /^Reloaded: 1 policy \(per-ip\)\.$/

/** Sends requests until `stop` is called. Collects every answer that is not from the Worker. */
function sendRequestsMeanwhile() {
  const failures: string[] = []
  let [count, stopped] = [0, false]
  const sending = (async () => {
    for (; !stopped; count++) {
      const answer = await get().catch((error) => `${error.name}: ${error.message}`)
      if (!/^\d+$/.test(answer)) failures.push(answer)
      await sleep(50)
    }
  })()
  const stop = () => {
    stopped = true
    return sending
  }
  return { failures, count: () => count, stop }
}

test('The Worker keeps responding during any sequence of invalid edits, and recovers from it.', async () => {
  const meanwhile = sendRequestsMeanwhile()
  const badValue =
    /^Not reloaded: sluice\.config\.ts:\d+:\d+: policies\[0\]\.limit: expected a whole number of at least 1, got 0 \(in "per-ip"\)\. The last valid configuration stays active\.$/
  const badSyntax =
    /^Not reloaded: sluice\.config\.ts:\d+:\d+: \S.*\. The last valid configuration stays active\.$/
  const file = join(folder, 'sluice.config.ts')
  try {
    await step(() => save(withLimit(0)), badValue, 10)
    await step(() => save('export defaul {'), badSyntax, 10)
    await step(() => save(withLimit(11)), RELOADED, 11)
    await step(() => rm(file), /^Not reloaded: sluice\.config\.ts: the file does not exist\./, 11)
    await step(() => save(withLimit(11)), RELOADED, 11)
    await step(
      () => save(`${withLimit(12)}\nthrow new Error('on purpose')`),
      /^Not reloaded: sluice\.config\.ts:\d+:\d+: on purpose\./,
      11,
    )
    await step(
      () => save(`import './src/nowhere.ts'\n${withLimit(12)}`),
      /^Not reloaded: sluice\.config\.ts:1:\d+: Could not resolve "\.\/src\/nowhere\.ts"/,
      11,
    )
    const replace = async () => {
      await writeFile(`${file}.new`, withLimit(13)) // as many editors save
      await rename(`${file}.new`, file)
    }
    await step(replace, RELOADED, 13)
    // Saving without a change does not reload.
    await save(withLimit(13))
    await sleep(2000)
    expect(lines).toHaveLength(read)
    await step(() => save(withLimit(12)), RELOADED, 12) // on a busy machine a needless line comes only now
    // After several quick saves the last one is active.
    for (const content of [withLimit(14), withLimit(0), '{', withLimit(15)]) {
      await save(content)
      await sleep(60)
    }
    await expect.poll(active, { timeout: 20_000 }).toBe(15)
    await expect.poll(() => lines.at(-1)).toMatch(RELOADED)
    read = lines.length
  } finally {
    await meanwhile.stop()
  }
  expect(meanwhile.failures).toEqual([])
  expect(meanwhile.count()).toBeGreaterThan(50)
  expect(lines.join('\n')).not.toMatch(/wrangler|workerd binary|ConfigError|\bat .*:\d+:\d+\)/)
}, 180_000)

test('An edit of a file that the configuration imports from another folder reloads, also after an error.', async () => {
  const edit = (content: string) => () => save(content, 'limits/per-ip.ts')
  const missing = /^Not reloaded: .*Could not resolve/
  const imported = `import { limit } from './limits/per-ip.ts'\n${withLimit('limit')}`
  await step(() => save(imported), missing, 15)
  // The folder did not exist when the configuration was last read.
  await step(edit('export const limit = 0'), /limit: expected a whole number/, 15)
  await step(edit('export const limit = 11'), RELOADED, 11)
  await step(edit('export const limit = {'), /limits\/per-ip\.ts:1:\d+: /, 11)
  await step(edit('export const limit = 12'), RELOADED, 12)
  // Switching a Git branch can remove a folder like this.
  await step(() => rm(join(folder, 'limits'), { recursive: true }), missing, 12)
  await step(edit('export const limit = 13'), RELOADED, 13)
  await step(edit('export const limit = 14'), RELOADED, 14)
}, 120_000)

test('An invalid wrangler.toml is reported in one line that names the file, and a valid one is used.', async () => {
  const invalid = /^Not reloaded: wrangler\.toml:\d+:\d+: .*$/
  await step(() => save(`${TOML}\n[vars\n`, 'wrangler.toml'), invalid, 14)
  await step(() => save(`${TOML}\n[vars]\nTEXT = "-a"\n`, 'wrangler.toml'), RELOADED, 14)
  expect(await get()).toBe('14-a')
})

test('An edit of a source file reloads, and requests in flight end with the Worker before it.', async () => {
  const edited = WORKER.replace('new Response(', 'new Response(1 + ')
  const slow = request(url, { method: 'POST' })
  const answered = once(slow, 'response').then(
    ([response]: IncomingMessage[]) => text(response!),
    (error) => String(error),
  )
  slow.write('a')
  await sleep(500) // the request reaches the Worker
  await step(() => save(edited, 'src/worker.ts'), RELOADED, 15)
  slow.end()
  expect(await answered).toBe('14-a')
  await step(
    () => save(`${WORKER}\nthrow new Error('on purpose')`, 'src/worker.ts'),
    /^Not reloaded: the Worker does not start: on purpose\. The last valid/,
    15,
  )
  await step(() => save('import {', 'src/worker.ts'), /^Not reloaded: src\/worker\.ts:1:\d+: /, 15)
  await sleep(300)
  expect(lines).toHaveLength(read)
})

test.each([
  ['a syntax error', '\nexport defaul {', /^sluice\.config\.ts:\d+:\d+: \S.*$/],
  ['a bad value', withLimit(0), /^sluice\.config\.ts:\d+:\d+: policies\[0\]\.limit: expected .*$/],
])(
  'With %s the Worker does not start, and one line names its position.',
  async (_, content, message) => {
    await save(WORKER, 'src/worker.ts')
    await save(content)
    await expect(start(await freePort())).rejects.toThrow(message)
  },
)

test('An edit while the first Worker starts reloads it.', async () => {
  await save(withLimit(10))
  const port = await freePort()
  let edit: (() => void) | undefined = () => {
    edit = undefined
    void save(withLimit(77))
  }
  const another = await start(port, () => edit?.())
  try {
    const limit = async () => (await fetch(`http://127.0.0.1:${port}/`)).text()
    await expect.poll(limit).toMatch(/^77/)
  } finally {
    await another.stop()
  }
})
