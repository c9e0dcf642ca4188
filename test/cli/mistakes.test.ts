import { mkdir, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { needPosix } from '../../cli/project/node.ts'
import { readWrangler } from '../../cli/project/wrangler-config.ts'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { processes, waitUntilEnded } from '../support/npm-start.ts'

const CONFIG = `import { defineConfig } from 'sluice'
export default defineConfig({
  origin: 'zone',
  policies: [{ name: 'per-ip', limit: 2, window: '1h' }],
})
`
const WORKER = `import { createGateway } from 'sluice'
import config from '../sluice.config'
export default createGateway(config)
`
const TOML = 'name = "shop"\nmain = "src/worker.ts"\ncompatibility_date = "2026-10-01"\n'

let project: CliProject
/** A folder for temporary files, which must be empty at the end. */
let temporary: string
let env: Record<string, string>
beforeAll(async () => {
  project = await cliProject()
  temporary = join(project.folder, 'tmp')
  env = { TMPDIR: temporary }
  await mkdir(temporary)
  await project.write('package.json', '{ "name": "shop", "type": "commonjs" }')
  await project.write('sluice.config.ts', CONFIG)
  await project.write('wrangler.toml', TOML)
  await project.write('src/worker.ts', WORKER)
})
afterEach(async () => {
  project.kill()
  expect(await readdir(temporary)).toEqual([])
  await project.write('sluice.config.ts', CONFIG)
  await project.write('wrangler.toml', TOML)
})
afterAll(() => project.remove())

const sluice = (...args: string[]) => project.sluice(args, { env })
const refusedDev = (more: Record<string, string> = {}) => project.refusedDev({ ...env, ...more })

describe('a configuration that does not load', () => {
  test('check and explain name the file, line and column of a syntax error once.', async () => {
    await project.write('sluice.config.ts', CONFIG.replace('limit: 2,', 'limit: 2 +,'))
    const place = 'sluice.config.ts:4:42: Unexpected ","'
    expect((await sluice('check')).stdout).toContain(`✗ policies\nError: ${place}\n`)
    expect(await sluice('explain', '--path', '/')).toEqual({
      code: 1,
      stdout: '',
      stderr: `${place}\n`,
    })
  })

  test('A configuration that ends the process is an error.', async () => {
    await project.write('sluice.config.ts', 'process.exit(0)\nexport default {}\n')
    const failed = { code: 1, stdout: '', stderr: 'sluice.config.ts: the file ends the process\n' }
    expect(await project.spawned(['explain', '--path', '/'], { env })).toEqual(failed)
    expect(await refusedDev()).toMatch(/^sluice\.config\.ts: the file does not load within 30 s/)
  })

  test('SIGTERM stops dev while it reads a configuration that never ends.', async () => {
    await project.write('sluice.config.ts', 'for (;;);\nexport default {}\n')
    const child = project.start(['dev'], { env: { ...env, PORT: String(await freePort()) } })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const reader = () => processes(child.pid!).filter(({ command }) => / read /.test(command))
    await expect.poll(reader, { timeout: 20_000 }).toHaveLength(1)
    const family = processes(child.pid!)
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
    await waitUntilEnded(family)
  })

  test('Without a configuration explain names the command that writes one.', async () => {
    await rm(join(project.folder, 'sluice.config.ts'))
    expect(await sluice('explain', '--path', '/')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'sluice.config.ts: the file does not exist. To write one: npx sluice init. If your code has the policies, move them there\n',
    })
  })
})

describe('a configuration of wrangler that does not load', () => {
  test.each([
    ['main = 3\n', 'wrangler.toml: Expected "main" to be of type string but got 3.'],
    [
      `${TOML}routes = 5\nvars = 3\n`,
      'wrangler.toml: Expected "routes" to be an array but got 5. (and 1 more)',
    ],
    ['main = \n', 'wrangler.toml:1:8: Invalid TOML document: invalid value'],
    [
      'name = "shop"\n',
      'wrangler.toml: main: expected the path of the Worker, such as "src/worker.ts"',
    ],
  ])('The wrangler.toml %j is refused.', async (text, message) => {
    await project.write('wrangler.toml', text)
    await expect(readWrangler(project.folder)).rejects.toThrow(new Error(message))
  })

  test('With a Worker that does not exist dev does not start.', async () => {
    await project.write('wrangler.toml', TOML.replace('worker.ts', 'nowhere.ts'))
    expect(await refusedDev()).toBe('src/nowhere.ts:1:1: Could not resolve "src/nowhere.ts"')
  })
})

describe('variables that dev cannot use', () => {
  const database = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: 'x' }
  test.each<[Record<string, string>, string | RegExp]>([
    [{ PORT: 'x' }, 'PORT: expected a port number, got "x"'],
    [
      { ORIGIN: 'localhost:3000' },
      'ORIGIN: expected a URL like "http://127.0.0.1:3000", got "localhost:3000"',
    ],
    [
      { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
      'set both UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or neither',
    ],
    [
      { ...database, UPSTASH_REDIS_REST_URL: 'redis://127.0.0.1' },
      'UPSTASH_REDIS_REST_URL: expected a URL like "https://name.upstash.io", got "redis://127.0.0.1"',
    ],
    [{ REDIS_URL: 'redis://127.0.0.1:1' }, /^REDIS_URL does not respond: .*ECONNREFUSED/],
  ])('With %j dev does not start.', async (variables, message) => {
    expect(await refusedDev(variables)).toMatch(message)
  })

  test('A database that refuses the token, or does not respond, is an error.', async () => {
    const server = createServer((_, response) => response.writeHead(401).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const variables = { ...database, UPSTASH_REDIS_REST_URL: url }
    expect(await refusedDev(variables)).toBe(
      `UPSTASH_REDIS_REST_TOKEN: ${url} answers 401 to this token`,
    )
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    expect(await refusedDev(variables)).toMatch(
      /^UPSTASH_REDIS_REST_URL: http:.* does not respond: .*ECONNREFUSED/,
    )
  })
})

test('On Windows dev says in one sentence that it runs in WSL.', () => {
  expect(() => needPosix('npx sluice dev', 'win32')).toThrow(
    'npx sluice dev runs on Linux, macOS and WSL. Run it in a terminal of WSL',
  )
  for (const platform of ['linux', 'darwin']) needPosix('npx sluice dev', platform)
})
