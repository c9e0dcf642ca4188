import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { copyProject, type Project, sendRequestsMeanwhile } from '../support/npm-start.ts'

let project: Project
let root: string
let npmStart: Project['npmStart']
beforeAll(async () => {
  project = await copyProject()
  ;({ root, npmStart } = project)
})
afterEach(() => project.kill())
afterAll(() => project.remove())

test('npm start keeps responding during any sequence of invalid edits, and recovers from it.', async () => {
  const file = `${root}sluice.config.ts`
  const good = await readFile(file, 'utf8')
  const withLimit = (limit: number) => good.replace('limit: 10,', `limit: ${limit},`)
  const run = await npmStart()
  const meanwhile = sendRequestsMeanwhile(run.url)
  const limit = async () => {
    const response = await fetch(`${run.url}/`, { signal: AbortSignal.timeout(3000) })
    return Number(/"per-ip";q=(\d+)/.exec(response.headers.get('ratelimit-policy')!)?.[1])
  }
  const lines = () =>
    run
      .output()
      .split('Ctrl-C stops everything.')[1]!
      .split('\n')
      .filter((line) => line.trim() !== '')
  /** Makes a change, and expects one line of output for it and the given limit in responses. */
  async function step(change: () => Promise<void>, line: RegExp, expected: number) {
    const before = lines().length
    await change()
    await expect.poll(() => lines().length, { timeout: 20_000 }).toBeGreaterThan(before)
    await sleep(500) // there must be no second line
    expect(lines().slice(before)).toEqual([expect.stringMatching(line)])
    expect(await limit()).toBe(expected)
  }
  const save = (text: string) => () => writeFile(file, text)
  const reloaded = /^Reloaded: 3 policies \(per-ip, per-ip-daily, login\)\.$/
  const badValue =
    /^Not reloaded: sluice\.config\.ts: policies\[0\]\.limit: expected a whole number of at least 1, got 0 \(in "per-ip"\)\. The last valid configuration stays active\.$/
  const badSyntax =
    /^Not reloaded: sluice\.config\.ts:\d+:\d+: \S.*\. The last valid configuration stays active\.$/
  try {
    await step(save(withLimit(0)), badValue, 10)
    await step(save('export defaul {'), badSyntax, 10)
    await step(save(withLimit(11)), reloaded, 11)
    await step(save(`${good}\n}}`), badSyntax, 11)
    await step(save(withLimit(12)), reloaded, 12)
    await step(() => rm(file), /^Not reloaded: sluice\.config\.ts: the file does not exist\./, 12)
    await step(save(withLimit(12)), reloaded, 12)
    await step(
      save(`${good}\nthrow new Error('on purpose')`),
      /^Not reloaded: sluice\.config\.ts:\d+:\d+: on purpose\./,
      12,
    )
    await step(
      save(good.replace("'./src/config/parse.ts'", "'./src/nowhere.ts'")),
      /^Not reloaded: sluice\.config\.ts:1:\d+: Could not resolve "\.\/src\/nowhere\.ts"/,
      12,
    )
    await step(
      async () => {
        await writeFile(`${file}.new`, withLimit(13)) // as many editors save
        await rename(`${file}.new`, file)
      },
      reloaded,
      13,
    )
    // Saving without a change does not reload.
    const before = lines().length
    await writeFile(file, withLimit(13))
    await sleep(3000)
    expect(lines().length).toBe(before)
    // After several quick saves the last one is active.
    for (const text of [withLimit(14), withLimit(0), '{', withLimit(15)]) {
      await writeFile(file, text)
      await sleep(60)
    }
    await expect.poll(limit, { timeout: 20_000 }).toBe(15)
    await expect.poll(() => lines().at(-1)).toMatch(reloaded)
    await meanwhile.stop()
    expect(meanwhile.failures).toEqual([])
    expect(meanwhile.count()).toBeGreaterThan(50)
    expect(run.output()).not.toMatch(/wrangler|workerd binary|ConfigError|\bat .*:\d+:\d+\)/)
  } finally {
    await meanwhile.stop()
    await writeFile(file, good)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 180_000)

test('npm start notices an edit of a file that the configuration imports from another folder, also after an error.', async () => {
  const file = `${root}sluice.config.ts`
  const folder = `${root}limits`
  const imported = `${folder}/per-ip.ts`
  const good = await readFile(file, 'utf8')
  const withImport = `import { limit } from './limits/per-ip.ts'\n${good.replace('limit: 10,', 'limit,')}`
  const run = await npmStart()
  /** Saves the imported file, expects a line in the output, and returns the active limit. */
  async function step(text: string, line: RegExp) {
    const before = run.output().length
    await mkdir(folder, { recursive: true })
    await writeFile(imported, text)
    const output = () => run.output().slice(before)
    await expect.poll(output, { timeout: 20_000 }).toMatch(line)
    return Number(
      /"per-ip";q=(\d+)/.exec((await fetch(run.url)).headers.get('ratelimit-policy')!)?.[1],
    )
  }
  try {
    await writeFile(file, withImport)
    await expect.poll(run.output, { timeout: 20_000 }).toContain('Could not resolve')
    // The folder did not exist when the configuration was last read.
    expect(await step('export const limit = 0', /limit: expected a whole number/)).toBe(10)
    expect(await step('export const limit = 11', /Reloaded/)).toBe(11)
    expect(await step('export const limit = {', /limits\/per-ip\.ts:1:\d+: /)).toBe(11)
    expect(await step('export const limit = 12', /Reloaded/)).toBe(12)
    // Switching a Git branch can remove a folder like this.
    await rm(folder, { recursive: true })
    await expect.poll(run.output, { timeout: 20_000 }).toMatch(/Could not resolve.*\n$/)
    expect(await step('export const limit = 13', /Reloaded/)).toBe(13)
    expect(await step('export const limit = 14', /Reloaded/)).toBe(14)
  } finally {
    await writeFile(file, good)
    await rm(folder, { recursive: true, force: true })
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 120_000)

test('npm start reports an invalid wrangler.toml in one line that names the file.', async () => {
  const file = `${root}wrangler.toml`
  const good = await readFile(file, 'utf8')
  const run = await npmStart()
  try {
    await writeFile(file, `${good}\n[vars\n`)
    await expect
      .poll(run.output, { timeout: 20_000 })
      .toMatch(/\nNot reloaded: wrangler\.toml:\d+:\d+: .*\n$/)
    await writeFile(file, `${good}\n[vars]\nORIGIN_NAME = "a"\n`)
    await expect.poll(run.output, { timeout: 20_000 }).toContain('\nReloaded: 3 policies')
  } finally {
    await writeFile(file, good)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 60_000)

test('npm start reloads after an edit of a source file, and completes requests in flight.', async () => {
  const source = `${root}src/worker.ts`
  const original = await readFile(source, 'utf8')
  const run = await npmStart()
  try {
    const slow = fetch(`${run.url}/drip/9000`).then(async (response) => ({
      policy: response.headers.get('ratelimit-policy'),
      text: await response.text(),
    }))
    await sleep(500)
    await writeFile(
      source,
      original.replace('createGateway(config)', "createGateway({ ...config, headers: 'draft-6' })"),
    )
    await expect.poll(run.output, { timeout: 20_000 }).toContain('Reloaded: 3 policies')
    expect((await fetch(run.url)).headers.get('ratelimit-limit')).toBe('10')
    const { policy, text } = await slow
    expect(policy).toContain('"per-ip";q=10')
    expect(text).toBe('drip '.repeat(90))
    await writeFile(source, `${original}\nthrow new Error('on purpose')`)
    await expect
      .poll(run.output, { timeout: 20_000 })
      .toContain('Not reloaded: the Worker does not start: on purpose. The last valid')
    await writeFile(source, 'import {')
    await expect
      .poll(run.output, { timeout: 20_000 })
      .toMatch(/Not reloaded: src\/worker\.ts:1:\d+: /)
    expect((await fetch(run.url)).headers.get('ratelimit-limit')).toBe('10')
  } finally {
    await writeFile(source, original)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 60_000)

test.each([
  ['a syntax error', '\nexport defaul {', /Could not start: sluice\.config\.ts:\d+:\d+: \S/],
  [
    'a bad value',
    'window: 0',
    /Could not start: sluice\.config\.ts: policies\[0\]\.window: expected a duration/,
  ],
])(
  'npm start does not start with %s in the configuration, and reports it in one line with its position.',
  async (_, change, message) => {
    const file = `${root}sluice.config.ts`
    const good = await readFile(file, 'utf8')
    const text = change.startsWith('window') ? good.replace("window: '10s'", change) : good + change
    try {
      await writeFile(file, text)
      const run = await npmStart()
      expect(await run.ended).toBe(1)
      expect(run.output()).toMatch(message)
      expect(run.output()).not.toMatch(/^\s+at /m)
    } finally {
      await writeFile(file, good)
    }
  },
)

test('npm start reads variables from .dev.vars, and the variables that the configuration names from the environment.', async () => {
  const file = `${root}sluice.config.ts`
  const vars = `${root}.dev.vars`
  const good = await readFile(file, 'utf8')
  const digest = (key: string) => createHash('sha256').update(key).digest('hex')
  const config = `import { defineConfig } from './src/config/parse.ts'
import { jwt } from './src/jwt/index.ts'
export default defineConfig({
  deadline: '10s',
  jwt: jwt({ secret: 'JWT_SECRET' }),
  apiKeys: { known: 'API_KEYS' },
  policies: [
    { name: 'per-key', limit: 7, limits: { pro: 70 }, plan: 'header:x-plan', window: '1h', key: 'api-key',
      onMissingKey: 'refuse', match: { path: '/api/*', not: { path: '/api/health' } } },
    { name: 'exports', algorithm: 'concurrency', limit: 2, window: '10m', match: { path: '/exports/:id', method: 'POST' } },
    { name: 'per-user', limit: 9, window: 3_600_000, key: 'jwt:sub', onMissingKey: 'refuse', match: { path: '/me' } },
  ],
})
`
  await writeFile(file, config)
  await writeFile(vars, `SLUICE_API_TOKEN="a-token-of-dev-vars"\nAPI_KEYS=${digest('one')}\n`)
  const run = await npmStart({ API_KEYS: digest('two'), NOT_NAMED: 'x' })
  const status = async (path: string, headers: Record<string, string>, init: RequestInit = {}) =>
    (await fetch(`${run.url}${path}`, { ...init, headers })).status
  try {
    expect(await status('/api/x', { 'x-api-key': 'two' })).toBe(200)
    expect(await status('/api/x', { 'x-api-key': 'one' })).toBe(403)
    const decide = (token: string) =>
      status(
        '/_sluice/v1/decide',
        { authorization: `Bearer ${token}` },
        {
          method: 'POST',
          body: JSON.stringify({ policy: 'exports', key: '203.0.113.7' }),
        },
      )
    expect(await decide('a-token-of-dev-vars')).toBe(200)
    expect(await decide('dev-api-token-0000')).toBe(401)
    const banner = run.output()
    for (const text of [
      /per-key +7 per 1h \(plans of header:x-plan: pro 70\) +sliding-window +api-key +\/api\/\*, not \/api\/health/,
      /exports +2 in flight +concurrency +ip +POST \/exports\/:id/,
      /per-user +9 per 3600000 ms/,
      `curl -i ${run.url}/api/x -H 'X-Api-Key: …'`,
      `curl -i -X POST ${run.url}/exports/1`,
      /\/decide .*\$SLUICE_API_TOKEN.*"policy":"per-key"/,
      /policies\/per-key\/peek .*dev-operate-token-0000/,
      'The variable JWT_SECRET is not set. Add it to .dev.vars, or start with: JWT_SECRET=… npm start',
    ]) {
      expect(banner).toMatch(text)
    }
    expect(banner).not.toContain('"policy":"per-ip"')
    expect(banner).not.toContain('a-token-of-dev-vars')
    // An edit of .dev.vars reloads.
    await writeFile(vars, 'SLUICE_API_TOKEN="another-token-of-dev-vars"\n')
    await expect.poll(run.output, { timeout: 20_000 }).toContain('Reloaded: 3 policies')
    expect(await decide('another-token-of-dev-vars')).toBe(200)
  } finally {
    await writeFile(file, good)
    await rm(vars)
    process.kill(-run.pid, 'SIGINT')
    await run.ended
  }
}, 60_000)
