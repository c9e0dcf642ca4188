/** `npm run check`: checks types, lint and format, policies, the binding of the shield, the namespace, imports and the size of the bundle. Exits with 1 if a check fails. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { ConfigError } from '../src/base/errors.ts'
import { lintWorker, problemsOf } from '../src/lint/lint.ts'
import { build, readModules } from './build.ts'
import { describeNamespace } from './check/namespace.ts'
import { shieldMismatches } from './check/shield.ts'
import { checkImports } from './imports.ts'
import { loadConfig } from './load-config.ts'
import { readBindings } from './wrangler-toml.ts'

const USAGE = `Checks this project before a deployment: types, lint and format, policies, the binding of the
shield, the namespace, imports, and the size of the bundle. Exits with 1 if a check fails.

  npm run check -- [options]

  --policies     check only the policies: errors, and settings that look like a mistake
  --config FILE  the configuration whose policies are checked (default sluice.config.ts)
  --help         show this text`

const root = fileURLToPath(new URL('..', import.meta.url))
/**
 * Maximum gzipped size of the bundle, in bytes. The original goal was 60 KiB. Beyond it, 18 KiB are the commands of @upstash/redis (two are
 * used), 14 KiB the decision API, and 8 KiB optional features.
 */
const MAX_BUNDLE = 97 * 1024

type Check = [name: string, run: () => unknown]

/** Runs a tool of node_modules. Returns its output if it fails. */
function run(name: string, ...args: string[]): string | undefined {
  const path = join(root, 'node_modules/.bin', name)
  const { status, stdout, stderr } = spawnSync(path, args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? undefined : `${stdout}${stderr}`
}

/** The findings of the linter, or the problems of a configuration that does not parse. */
async function checkPolicies(file: string): Promise<string | undefined> {
  const { vars } = await readBindings(join(dirname(resolve(file)), 'wrangler.toml'))
  const findings = await loadConfig(file).then(
    (config) => lintWorker(config, vars),
    (error) => {
      if (error instanceof ConfigError) return problemsOf(error)
      throw new Error(`${file}: ${error.message}`)
    },
  )
  const lines = findings.map(({ code, path, message, hint }) => {
    const more = [hint, code === 'invalid' ? '' : `docs/reference/linter.md#${code}`].filter(
      Boolean,
    )
    return `${code}  ${path}: ${message}${more.length > 0 ? `\n  ${more.join(' ')}` : ''}`
  })
  if (findings.some(({ code }) => code === 'invalid')) {
    lines.push(
      'The configuration does not load until every invalid setting is fixed. docs/reference/configuration.md describes each field.',
    )
  }
  return lines.join('\n') || undefined
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
    details.bundle = `${(size / 1024).toFixed(1)} KiB gzip`
    return size > MAX_BUNDLE
      ? `The bundle has ${details.bundle}; the maximum is ${MAX_BUNDLE / 1024} KiB.`
      : undefined
  } finally {
    await rm(outdir, { recursive: true })
  }
}

function read(): { policies?: boolean; config?: string } | undefined {
  try {
    const { values } = parseArgs({
      options: {
        policies: { type: 'boolean' },
        config: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (!values.help) return values
    console.log(USAGE)
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exitCode = 1
  }
  return undefined
}

/** Additional information to print when a check succeeds, by the name of the check. */
const details: Record<string, string> = {}
const options = read()
const policies: Check = [
  'policies',
  () => checkPolicies(options?.config ?? join(root, 'sluice.config.ts')),
]
/** Checks the shield of sluice.config.ts. With `--config` the matching wrangler.toml is not known. */
async function checkShield(): Promise<string | undefined> {
  const config = await loadConfig(join(root, 'sluice.config.ts')).catch(() => undefined) // checkPolicies reports the error
  if (!config) return undefined
  return (await shieldMismatches(config, join(root, 'wrangler.toml'))).join('\n') || undefined
}

/** Prints the namespace. A missing namespace is not an error. */
async function checkNamespace(): Promise<undefined> {
  const config = await loadConfig(join(root, 'sluice.config.ts')).catch(() => undefined)
  if (config) details.namespace = await describeNamespace(config, join(root, 'wrangler.toml'))
}

const all: Check[] = [
  ['types', () => run('tsc', '-p', '.') ?? run('tsc', '-p', 'src')],
  ['lint and format', () => run('biome', 'check')],
  policies,
  ['shield', checkShield],
  ['namespace', checkNamespace],
  ['imports', async () => (await checkImports(root)).join('\n') || undefined],
  ['bundle', checkBundle],
]

let failed = 0
for (const [name, check] of options ? (options.policies ? [policies] : all) : []) {
  const problem = await Promise.resolve()
    .then(check)
    .catch((error) => `${error.name}: ${error.message}`)
  if (problem) failed += 1
  const detail = details[name] ? ` (${details[name]})` : ''
  console.log(problem ? `✗ ${name}\n${problem}` : `✓ ${name}${detail}`)
}
if (failed > 0) process.exitCode = 1
