import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { build } from '../../dev/build.ts'
import { startStack } from '../../dev/stack.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
afterAll(() => rm(folder, { recursive: true }))

test('A Worker of five lines in another folder works.', async () => {
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules/sluice'))
  await writeFile(
    join(folder, 'index.ts'),
    `import { createGateway, defineConfig } from 'sluice'
    export default createGateway(defineConfig({
      policies: [{ name: 'mine', limit: 2, window: '1m' }],
    }))`,
  )
  await writeFile(
    join(folder, 'wrangler.toml'),
    `name = "mine"
    main = "index.ts"
    compatibility_date = "2026-10-01"
    rules = [{ type = "Text", globs = ["**/*.lua"], fallthrough = false }]`,
  )
  const compilerOptions = {
    strict: true,
    target: 'ES2024',
    lib: ['ES2024', 'WebWorker'],
    types: [],
    skipLibCheck: true,
  }
  // The settings that the README requires.
  const required = {
    module: 'ESNext',
    moduleResolution: 'bundler',
    allowImportingTsExtensions: true,
    noEmit: true,
  }
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, ...required }, include: ['index.ts'] }),
  )
  await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['-p', folder]).catch(
    ({ stdout }) => expect(stdout).toBe(''),
  )
  await build(join(folder, 'out'), undefined, folder)
  const stack = await startStack({ worker: join(folder, 'out') })
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await stack.fetch('/')).status)
  await stack.stop()
  expect(statuses).toEqual([200, 200, 429])
})
