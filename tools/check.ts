/** `npm run check`: checks types, lint and format, policies, the bindings, the namespace, imports and the size of the bundle. Exits with 1 if a check fails. */
import { spawnSync } from 'node:child_process'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeBuilt } from '../cli/build.ts'
import { checkPolicies } from '../cli/check/policies.ts'
import { bindingChecks, type Check, runChecks } from '../cli/check/run.ts'
import { readScriptOptions } from '../cli/options.ts'
import { hostOf, hosts } from '../cli/project/hosts.ts'
import { loadConfig } from '../cli/project/load-config.ts'
import { wranglerFile } from '../cli/project/wrangler-config.ts'
import { checkImports } from './imports.ts'
import { bundleOf } from './size/bundle.ts'
import { gzipSize } from './size/shares.ts'

const USAGE = `Checks this project before a deployment: types, lint and format, policies, the bindings, the
namespace, imports, and the size of the bundle. Exits with 1 if a check fails.

  npm run check -- [options]

  --policies     check only the policies: errors, and settings that look like a mistake
  --config FILE  the configuration whose policies are checked (default sluice.config.ts)
  --help         show this text`

const root = fileURLToPath(new URL('..', import.meta.url))
const config = join(root, 'sluice.config.ts')
/** The maximum size of a Worker on Cloudflare's Free plan, compressed, in bytes. */
const MAX_BUNDLE = 3 * 1024 * 1024

/** Runs a tool of node_modules. Returns its output if it fails. */
function run(name: string, ...args: string[]): string | undefined {
  const path = join(root, 'node_modules/.bin', name)
  const { status, stdout, stderr } = spawnSync(path, args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? undefined : `${stdout}${stderr}`
}

/** The Worker imports the module of the configuration, which Git does not have. */
async function checkTypes() {
  await writeBuilt(config, await hostOf(config))
  return (
    run('tsc', '-p', '.') ??
    run('tsc', '-p', 'src') ??
    run('tsc', '-p', 'cli') ??
    run('tsc', '-p', 'cli/dashboard/page') ??
    run('tsc', '-p', 'site/playground')
  )
}

async function checkBundle() {
  const size = gzipSize((await bundleOf()).code)
  details.bundle = `${(size / 1024).toFixed(1)} KiB gzip`
  return size > MAX_BUNDLE
    ? `The bundle has ${details.bundle}; Cloudflare's Free plan accepts ${MAX_BUNDLE / 1024} KiB.`
    : undefined
}

/** The gateway with the configuration of a file. */
const gatewayOf = (file: string) => ({ ...hosts.gateway, load: () => loadConfig(file) })

/** Additional information to print when a check succeeds, by the name of the check. */
const details: Record<string, string> = {}
const options = readScriptOptions(
  { policies: { type: 'boolean' }, config: { type: 'string' } },
  USAGE,
)
const policies: Check = [
  'policies',
  () => {
    const file = resolve(options?.config ?? config)
    return checkPolicies(file, wranglerFile(dirname(file)), details, gatewayOf(file))
  },
]
const all: Check[] = [
  ['types', checkTypes],
  ['lint and format', () => run('biome', 'check')],
  policies,
  // With `--config` the matching wrangler.toml is not known.
  ...bindingChecks(join(root, 'wrangler.toml'), gatewayOf(config), details),
  ['imports', async () => (await checkImports(root)).join('\n') || undefined],
  ['bundle', checkBundle],
]

if (options && !(await runChecks(options.policies ? [policies] : all, details)))
  process.exitCode = 1
