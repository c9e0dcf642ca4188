import { execFileSync, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))
const tool = (name: string) => join(project, 'node_modules/.bin', name)

test("The Hono app of the README compiles with the settings of the guide and Cloudflare's types.", async () => {
  const readme = await readFile(join(project, 'README.md'), 'utf8')
  const guide = await readFile(join(project, 'docs/guides/hono-app.md'), 'utf8')
  const app = /^```ts hono-app\n(.*?)^```/ms.exec(readme)![1]!
  // In a step of a numbered list, so it is indented.
  const tsconfig = /^ +```json tsconfig\n(.*?)^ +```/ms.exec(guide)![1]!
  const root = await mkdtemp(join(tmpdir(), 'sluice-types-'))
  try {
    await mkdir(join(root, 'node_modules'))
    await symlink(project, join(root, 'node_modules/sluice'))
    await symlink(join(project, 'node_modules/hono'), join(root, 'node_modules/hono'))
    await writeFile(join(root, 'app.ts'), app)
    await writeFile(
      join(root, 'wrangler.toml'),
      'name = "app"\nmain = "app.ts"\ncompatibility_date = "2026-10-01"\n',
    )
    await writeFile(join(root, 'tsconfig.json'), tsconfig)
    execFileSync(tool('wrangler'), ['types'], { cwd: root, stdio: 'pipe' })
    const { stdout } = spawnSync(tool('tsc'), ['-p', '.'], { cwd: root, encoding: 'utf8' })
    expect(stdout).toBe('')
  } finally {
    await rm(root, { recursive: true })
  }
}, 60_000)
