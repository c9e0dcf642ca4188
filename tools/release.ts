/** `npm run release -- <version>`: makes the commit and the tag of a release. Publishes nothing: .github/workflows/release.yml does. */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type ReleaseOptions, release } from './release/release.ts'

const USAGE = `Builds and tests a release in a temporary clone, then commits its version and its changelog, and sets the tag
v<version>. Publishes nothing. Exits with 1 if a check fails; the repository is then unchanged.

  npm run release -- <version|patch|minor|major> [options]

  --dry-run  change nothing in the repository
  --help     show this text`

const steps: ReleaseOptions['steps'] = [
  ['npm', 'ci', '--no-audit', '--no-fund'],
  ['npm', 'run', 'build'],
  ['npm', 'run', 'check:package'],
  ['npm', 'pack', '--ignore-scripts'],
  ['npm', 'run', 'test:package'],
]

function read(): { version: string; dryRun: boolean } | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { 'dry-run': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    })
    if (values.help) return void console.log(USAGE)
    if (positionals.length !== 1) throw new Error('Write one version, or patch, minor or major.')
    // Without `--`, npm takes the option for itself.
    const dryRun = values['dry-run'] ?? process.env.npm_config_dry_run === 'true'
    return { version: positionals[0]!, dryRun }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exitCode = 1
  }
  return undefined
}

const options = read()
if (options) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const date = new Date().toISOString().slice(0, 10)
  try {
    const version = await release({ ...options, root, steps, date, log: console.log })
    console.log(
      options.dryRun
        ? `✓ v${version} can be released. Nothing changed in the repository.`
        : `✓ v${version} is committed and tagged. To publish it: git push --atomic origin main v${version}`,
    )
  } catch (error) {
    console.error(`✗ ${(error as Error).message}`)
    process.exitCode = 1
  }
}
