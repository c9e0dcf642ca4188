/** Projects of Cloudflare's own tools: the template that deploys, the plugin for Vite, and the plugin for Vitest. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { expect, test } from 'vitest'
import { gatewayFiles } from '../../cli/init/templates.ts'
import { blocksOf, pageAt, read, root } from '../support/pages.ts'
import { type Consumer, createConsumer } from './support/consumer.ts'

const names = readdirSync(join(root, 'examples/worker'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/node_modules|\.wrangler/.test(entry.parentPath))
  .map((entry) => join(entry.parentPath, entry.name))
const template = Object.fromEntries(
  names.map((file) => [
    file.slice(join(root, 'examples/worker/').length),
    readFileSync(file, 'utf8'),
  ]),
)

/** The answers of twelve requests of one client, when the server is up. */
async function twelve(url: string, exited: Promise<never>): Promise<number[]> {
  const headers = { 'CF-Connecting-IP': '192.0.2.1' }
  const ask = async () => (await fetch(url, { headers }).catch(() => undefined))?.status
  await expect.poll(() => Promise.race([ask(), exited]), { timeout: 90_000 }).toBeTypeOf('number')
  const statuses: number[] = []
  for (let count = 0; count < 12; count += 1) statuses.push((await ask())!)
  return statuses
}

const dryRun = (project: Consumer) =>
  project.run('wrangler', 'deploy', '--dry-run', '--outdir', join(project.folder, 'out'))

test('The template deploys without a secret, passes check and compiles.', async () => {
  // Each line of such a file becomes a secret that the button asks for.
  expect(Object.keys(template).filter((name) => /\.(dev\.vars|env)/.test(name))).toEqual([])
  const project = await createConsumer({ files: template })
  const deployed = await dryRun(project)
  expect(deployed).toContain('env.SLUICE_SUBJECT (SluiceSubject)')
  expect(deployed).not.toMatch(/secret/i)
  expect(await project.run('sluice', 'check')).toContain('✓ bindings')
  expect(await project.run('tsc', '-p', '.')).toBe('')
})

test('The template has the versions of this repository, and the configuration of wrangler that init writes.', () => {
  const { dependencies, devDependencies } = JSON.parse(template['package.json']!)
  const own = JSON.parse(read('package.json')).devDependencies
  const { sluice, ...others } = { ...dependencies, ...devDependencies }
  expect(sluice).toBe('latest')
  for (const [name, version] of Object.entries(others))
    expect([name, version]).toEqual([name, own[name]])
  const written = gatewayFiles('sluice-worker', true)['wrangler.jsonc']!
  const lines = /^ *\/\/ (In front|"routes").*\n/gm // The template has no route.
  expect(template['wrangler.jsonc']).toBe(written.replace(lines, ''))
})

test('The button of the template names the repository of package.json.', () => {
  const { repository = 'github:OWNER/NAME' } = JSON.parse(read('package.json'))
  const address = repository.replace('github:', 'https://github.com/')
  expect(template['README.md']).toContain(`/?url=${address}/tree/main/examples/worker)`)
})

/** The template with further files: a project of one of the tools. */
const withFiles = (files: Record<string, string>) => {
  const { 'package.json': _, ...others } = template
  return { ...others, 'package.json': '{ "type": "module" }', ...files }
}

/** The code block of a name on the page of Hono. */
const shown = (page: string, name: string) =>
  blocksOf(pageAt(page)).find((block) => block.name === name)!.code

test("A project of Cloudflare's plugin for Vite limits requests in its server, builds and deploys.", async () => {
  const project = await createConsumer({
    packages: ['@cloudflare/vite-plugin@1.64.0', 'vite@8.4.0', 'hono@4.13.19', 'wrangler@4.156.0'],
    files: withFiles({ 'vite.config.ts': shown('docs/guides/hono-app.md', 'vite') }),
  })
  await project.run('sluice', 'build') // Vite does not run the command of wrangler.
  const port = await freePort()
  const { exited } = project.start(
    'vite',
    ['--port', `${port}`, '--strictPort', '--host', '127.0.0.1'],
    {},
  )
  expect(await twelve(`http://127.0.0.1:${port}/`, exited)).toContain(429)
  await project.run('vite', 'build')
  expect(await dryRun(project)).toContain('env.SLUICE_SUBJECT (SluiceSubject)')
  expect(await project.run('sluice', 'check')).toContain('✓ bindings')
})

test.each([
  ['@cloudflare/vitest-plugin', '1.5.0', '5.1.1'],
  ['@cloudflare/vitest-pool-workers', '0.23.0', '4.1.11'],
])('A test of %s sees the limits of the Worker.', async (name, version, vitest) => {
  const config = shown('docs/guides/test-policies.md', 'pool-config')
  const project = await createConsumer({
    packages: [`${name}@${version}`, `vitest@${vitest}`, 'hono@4.13.19'],
    files: withFiles({
      // The workerd of the old one is of August.
      'wrangler.jsonc': template['wrangler.jsonc']!.replace('2026-10-01', '2026-08-01'),
      'vitest.config.ts': config.replace('@cloudflare/vitest-plugin', name),
      'test/limits.test.ts': shown('docs/guides/test-policies.md', 'pool-test'),
    }),
  })
  await project.run('sluice', 'build')
  expect(await project.run('vitest', 'run', '--testTimeout=60000')).toMatch(/Tests\s+1 passed/)
})
