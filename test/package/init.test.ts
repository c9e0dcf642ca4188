import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

const eleven = await readFile(new URL('support/eleven.ts', import.meta.url), 'utf8')
const redis = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))

test('A project that sluice init writes passes its check, compiles, and its tests limit requests.', async () => {
  const project = await createConsumer({
    packages: ['hono@4.13.19', 'typescript@7.0.2'],
    files: {
      'test/eleven.ts': eleven,
      'test/app.test.ts': `import { Hono } from 'hono'
import { rateLimiter } from 'sluice'
import { startSluice } from 'sluice/testing'
import { afterAll, test } from 'vitest'
import { expectOneRefusal } from './eleven.ts'

const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (c) => c.text('Welcome.'))
const sluice = await startSluice({ app })
afterAll(() => sluice.stop())

test('The eleventh request is refused.', () => expectOneRefusal(() => sluice.fetch('/')))
`,
    },
  })
  await project.run('sluice', 'init', '--no-install')
  await project.npm('install', '--prefer-offline', '--no-audit', '--no-fund')
  await project.run('sluice', 'build')
  // A Redis that was downloaded before.
  await symlink(redis, join(project.folder, 'node_modules/.cache')).catch(() => {})
  expect(await project.run('sluice', 'check')).toContain('✓ policies')
  expect(await project.run('tsc', '--noEmit', '-p', '.')).toBe('')
  const config = join(project.folder, 'sluice.config.ts')
  const written = await readFile(config, 'utf8')
  // A long deadline, so that a slow machine causes no store errors.
  const text = written.replace('policies:', "deadline: '10s',\n  policies:")
  await writeFile(config, text)
  expect(await project.npm('test')).toMatch(/Tests\s+2 passed/)
  await writeFile(config, text.replace('limit: 10,', 'limit: 11,'))
  await expect(project.npm('test', '--', 'policies')).rejects.toThrow(/Tests\s+1 failed/)
})
