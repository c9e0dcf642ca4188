/** A new user without a database: the commands of the guide, in an empty folder. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { expect, test } from 'vitest'
import { gatewayFiles } from '../../cli/init/templates.ts'
import { createConsumer } from './support/consumer.ts'

test('A project that sluice init --store durable-objects writes limits requests in sluice dev, and passes the test that a project with Redis has.', async () => {
  const project = await createConsumer({ packages: ['typescript@7.0.2'], files: {} })
  await project.run('sluice', 'init', '--store', 'durable-objects', '--no-install')
  await project.npm('install', '--prefer-offline', '--no-audit', '--no-fund')
  await project.run('sluice', 'build')
  expect(await project.run('sluice', 'check')).toContain('✓ bindings')
  expect(await project.run('tsc', '--noEmit', '-p', '.')).toBe('')

  const port = await freePort()
  const { exited } = project.start('sluice', ['dev'], { PORT: `${port}` })
  const ask = async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.status
  await expect
    .poll(() => Promise.race([ask(), exited]), { timeout: 120_000, interval: 200 })
    .toBe(200)
  const statuses: (number | undefined)[] = []
  for (let count = 1; count <= 21; count++) statuses.push(await ask())
  expect(statuses).toContain(429)

  const path = 'test/policies.test.ts'
  expect(await readFile(join(project.folder, path), 'utf8')).toBe(gatewayFiles('shop', false)[path])
  // A long deadline, so that a slow machine causes no store errors.
  const config = join(project.folder, 'sluice.config.ts')
  const text = await readFile(config, 'utf8')
  await writeFile(config, text.replace('policies:', "deadline: '10s',\n  policies:"))
  expect(await project.npm('test')).toMatch(/Tests\s+1 passed/)
  // No Redis was downloaded.
  const cache = join(project.folder, 'node_modules/.cache')
  expect(await readdir(cache).catch(() => [])).not.toContain('sluice-redis')
})
