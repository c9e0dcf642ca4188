import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { findProxy } from '../../tools/proxies/binaries.ts'
import { findInstalledProxies } from '../support/proxy-binaries.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

test.each([
  ['nginx', 'NGINX_BIN'],
  ['caddy', 'CADDY_BIN'],
] as const)(
  'The binary of %s can be set with %s; a file that is not this server is an error.',
  async (name, variable) => {
    vi.stubEnv(variable, process.execPath)
    await expect(findProxy(name)).rejects.toThrow(`${variable}=${process.execPath} is not a `)
  },
)

test('Without a binary and without apt the error lists the commands that install the server.', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  for (const part of ['tools', 'packages/upstash-bridge']) {
    await cp(join(root, part), join(folder, part), { recursive: true })
  }
  await mkdir(join(folder, 'node_modules'))
  await symlink(join(root, 'node_modules/redis'), join(folder, 'node_modules/redis'))
  await symlink('../packages/upstash-bridge', join(folder, 'node_modules/sluice-upstash-bridge'))
  const code = `import { findProxy } from './tools/proxies/binaries.ts'
    await findProxy('caddy').catch((error) => console.log(error.message))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    env: { PATH: folder },
    encoding: 'utf8',
  })
  await rm(folder, { recursive: true })
  expect(output).toContain('brew install caddy')
  expect(output).toContain('sudo apt-get install caddy')
  expect(output).toContain('set CADDY_BIN')
})

test('Tests of a missing proxy are skipped with a warning, and fail if CI is set.', async () => {
  vi.stubEnv('CADDY_BIN', process.execPath)
  vi.stubEnv('CI', undefined)
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  expect(await findInstalledProxies()).toMatchObject({ caddy: undefined })
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('SKIPPED: the tests with caddy.'))
  vi.stubEnv('CI', 'true')
  await expect(findInstalledProxies()).rejects.toThrow('CADDY_BIN')
})
