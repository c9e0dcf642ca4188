/** `sluice init`: writes a configuration, a Worker and a first test into the current folder. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Call } from '../call.ts'
import { table } from '../dev/banner.ts'
import { readOptions } from '../options.ts'
import { countsInObjects, STORE_OPTION } from '../store.ts'
import { confirm } from './confirm.ts'
import { type Installer, install, installerOf } from './install.ts'
import { mergePackage } from './package-json.ts'
import { tarballOf } from './source.ts'
import { appFiles, gatewayFiles, IGNORED, SCRIPTS, TSCONFIG } from './templates.ts'
import { existingWorker } from './worker.ts'
import { type Files, textOf, writeAll } from './write.ts'

const usage = (
  title: string,
) => `Writes a project into this folder: sluice.config.ts, wrangler.toml, src/worker.ts, a first test in
test/policies.test.ts, and tsconfig.json if there is none. Adds scripts and packages to package.json
and lines to .gitignore, and installs the packages. Asks before it overwrites a file. If the folder
has a Worker, its files stay, and init prints the lines to add to it.

  ${title} [options]

  --store       redis (the default), or durable-objects: no database and no secret
  --force       overwrite existing files without asking
  --no-install  do not install packages
  --help        show this text

Exits with 1 if nothing was written, or if the installation fails.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    { ...STORE_OPTION, force: { type: 'boolean' }, 'no-install': { type: 'boolean' } },
    usage(call.title),
    call,
  )
  if (!options) return
  const folder = process.cwd()
  const inObjects = countsInObjects(options.store)
  const plan = await planOf(folder, await tarballOf(call.file), inObjects)
  if (plan.existing.length > 0 && !options.force) await confirm(plan.existing)
  await writeAll(folder, plan.files)
  for (const name of Object.keys(plan.files)) console.log(`Wrote ${name}`)
  for (const name of plan.kept) {
    console.log(`Kept the script "${name}" of package.json. Sluice's is: ${SCRIPTS[name]}`)
  }
  if (plan.missing) console.log(`\n${plan.missing}`)
  const installer = installerOf(folder)
  if (plan.added.length > 0 && !options['no-install']) {
    console.log(`\nInstalling ${plan.added.join(', ')} …`)
    await install(folder, installer)
  }
  const mustInstall = plan.added.length > 0 && options['no-install'] === true
  console.log(nextSteps(installer, mustInstall, plan.kept, inObjects))
}

interface Plan {
  files: Files
  /** The files that would be overwritten. */
  existing: string[]
  /** See `Merged`. */
  kept: string[]
  added: string[]
  /** What the user must add to the own Worker. */
  missing: string | undefined
}

/** Reads the folder, and plans all changes. @throws Error if something cannot be written */
async function planOf(
  folder: string,
  source: string | undefined,
  inObjects: boolean,
): Promise<Plan> {
  const manifest = await textOf(join(folder, 'package.json'))
  if (manifest === undefined) {
    throw new Error('package.json: the file does not exist. To write one: npm init -y')
  }
  const merged = merge(manifest, source)
  const worker = await existingWorker(folder, inObjects)
  const wanted = worker?.main
    ? appFiles(worker.main, worker.isGateway, inObjects)
    : gatewayFiles(workerName(merged.name ?? basename(folder)), inObjects)
  if (worker) delete wanted['wrangler.toml']
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
  const { kept, added } = merged
  return { files, existing, kept, added, missing: worker?.missing }
}

function merge(manifest: string, source: string | undefined) {
  try {
    return mergePackage(manifest, source)
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

const steps = (inObjects: boolean): [script: string, about: string][] => [
  ['dev', `run the Worker with ${inObjects ? '' : 'a Redis and '}a demo origin on this machine`],
  ['test', 'run test/policies.test.ts'],
  ['check', 'find mistakes in sluice.config.ts'],
  [
    'deploy',
    `deploy the Worker${inObjects ? '' : ', after: npx wrangler secret put UPSTASH_REDIS_REST_URL'}`,
  ],
]

/** @param kept scripts of package.json that are not those of Sluice */
function nextSteps(
  { name, run }: Installer,
  mustInstall: boolean,
  kept: string[],
  inObjects: boolean,
): string {
  const rows = steps(inObjects).map(([script, about]) => {
    const isOther = kept.includes(script) && script !== 'deploy'
    return [isOther ? `npx ${SCRIPTS[script]}` : `${run} ${script}`, about]
  })
  if (mustInstall) rows.unshift([`${name} install`, ''])
  if (!inObjects) rows.push(['', 'and: npx wrangler secret put UPSTASH_REDIS_REST_TOKEN'])
  return `\nNext steps:\n\n${table(rows)}`
}
