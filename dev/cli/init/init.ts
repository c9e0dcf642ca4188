/** `sluice init`: writes a configuration, a Worker and a first test into the current folder. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { WRANGLER_FILES } from '../../project/wrangler-config.ts'
import type { Call } from '../call.ts'
import { readOptions } from '../options.ts'
import { confirm } from './confirm.ts'
import { type Installer, install, installerOf } from './install.ts'
import { mergePackage } from './package-json.ts'
import { filesOf, IGNORED, TSCONFIG } from './templates.ts'
import { type Files, textOf, writeAll } from './write.ts'

const usage = (
  title: string,
) => `Writes a project into this folder: sluice.config.ts, wrangler.toml, src/worker.ts, a first test in
test/policies.test.ts, and tsconfig.json if there is none. Adds scripts and packages to package.json
and lines to .gitignore, and installs the packages. Asks before it overwrites a file.

  ${title} [options]

  --force       overwrite existing files without asking
  --no-install  do not install packages
  --help        show this text

Exits with 1 if nothing was written, or if the installation fails.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    { force: { type: 'boolean' }, 'no-install': { type: 'boolean' } },
    usage(call.title),
    call,
  )
  if (!options) return
  const folder = process.cwd()
  const plan = await planOf(folder)
  if (plan.existing.length > 0 && !options.force) await confirm(plan.existing)
  await writeAll(folder, plan.files)
  for (const name of Object.keys(plan.files)) console.log(`Wrote ${name}`)
  for (const name of plan.kept) {
    console.log(`Kept the script "${name}" of package.json. To run Sluice's: npx sluice ${name}`)
  }
  const installer = installerOf(folder)
  if (plan.added.length > 0 && !options['no-install']) {
    console.log(`\nInstalling ${plan.added.join(', ')} …`)
    await install(folder, installer)
  }
  console.log(nextSteps(installer, plan.added.length > 0 && options['no-install'] === true))
}

interface Plan {
  files: Files
  /** The files that would be overwritten. */
  existing: string[]
  /** See `Merged`. */
  kept: string[]
  added: string[]
}

/** Reads the folder, and plans all changes. @throws Error if something cannot be written */
async function planOf(folder: string): Promise<Plan> {
  const manifest = await textOf(join(folder, 'package.json'))
  if (manifest === undefined) {
    throw new Error('package.json: the file does not exist. To write one: npm init -y')
  }
  const other = WRANGLER_FILES.find(
    (name) => name !== 'wrangler.toml' && existsSync(join(folder, name)),
  )
  if (other) {
    throw new Error(
      `${other}: this folder has a Worker, and wrangler would not read wrangler.toml. Run init in an empty folder, or use rateLimiter() in your app. Nothing was written.`,
    )
  }
  const merged = merge(manifest)
  const wanted = filesOf(workerName(merged.name ?? basename(folder)))
  if (existsSync(join(folder, TSCONFIG))) delete wanted[TSCONFIG]
  const files: Files = {}
  const existing: string[] = []
  for (const [name, text] of Object.entries(wanted)) {
    const before = await textOf(join(folder, name))
    if (before === text) continue
    if (before !== undefined) existing.push(name)
    files[name] = text
  }
  if (merged.text !== manifest) files['package.json'] = merged.text
  const ignore = (await textOf(join(folder, '.gitignore'))) ?? ''
  const more = withIgnored(ignore)
  if (more !== ignore) files['.gitignore'] = more
  return { files, existing, kept: merged.kept, added: merged.added }
}

function merge(manifest: string) {
  try {
    return mergePackage(manifest)
  } catch (error) {
    throw new Error(`package.json: ${(error as Error).message}. Nothing was written.`)
  }
}

/** A name that Cloudflare accepts. */
const workerName = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z\d-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 63) || 'sluice'

/** Adds the missing lines. */
function withIgnored(text: string): string {
  const lines = text.split(/\r?\n/).map((line) => line.trim().replace(/\/$/, ''))
  const missing = IGNORED.filter((line) => !lines.includes(line.replace(/\/$/, '')))
  if (missing.length === 0) return text
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`
}

const nextSteps = ({ name, run }: Installer, mustInstall: boolean) => `
Next steps:

${mustInstall ? `  ${name} install\n` : ''}  ${run} dev     run the Worker with a Redis and a demo origin on this machine
  ${run} test    run test/policies.test.ts
  ${run} check   find mistakes in sluice.config.ts
  ${run} deploy  deploy the Worker, after: npx wrangler secret put UPSTASH_REDIS_REST_URL
                 and: npx wrangler secret put UPSTASH_REDIS_REST_TOKEN`
