/** `npm run check`: types, lint and format, configuration, import rule, and the deployable bundle. Exits 1 if anything is wrong. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { parseConfig } from '../src/policy.ts'
import { build, readModules } from './build.ts'
import { checkImports } from './imports.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const MAX_BUNDLE = 60 * 1024

/** Runs a tool of node_modules; says what it printed if it fails. */
function run(name: string, ...args: string[]): string | undefined {
  const path = join(root, 'node_modules/.bin', name)
  const { status, stdout, stderr } = spawnSync(path, args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? undefined : `${stdout}${stderr}`
}

async function checkConfig() {
  const { default: config } = await import('../sluice.config.ts')
  parseConfig(config) // also where defineConfig was left out
}

async function checkBundle() {
  const outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  try {
    await build(outdir)
    const { modules } = await readModules(outdir)
    const size = gzipSync(
      Object.values(modules)
        .map(({ contents }) => contents)
        .join(''),
    ).length
    bundle = `${(size / 1024).toFixed(1)} KiB gzip`
    return size > MAX_BUNDLE ? `${bundle}, above ${MAX_BUNDLE / 1024} KiB` : undefined
  } finally {
    await rm(outdir, { recursive: true })
  }
}

let bundle = ''
const checks: [name: string, run: () => unknown][] = [
  ['types', () => run('tsc', '-p', '.') ?? run('tsc', '-p', 'src')],
  ['lint and format', () => run('biome', 'check')],
  ['configuration', checkConfig],
  ['imports', async () => (await checkImports(root)).join('\n') || undefined],
  ['bundle', checkBundle],
]

let failed = 0
for (const [name, check] of checks) {
  const problem = await Promise.resolve()
    .then(check)
    .catch((error) => `${error.name}: ${error.message}`)
  if (problem) failed += 1
  console.log(
    problem ? `✗ ${name}\n${problem}` : `✓ ${name}${name === 'bundle' ? ` (${bundle})` : ''}`,
  )
}
process.exitCode = failed > 0 ? 1 : 0
