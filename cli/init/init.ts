/** `sluice init`: writes a configuration, a Worker and a first test into the current folder. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { writeBuilt } from '../build.ts'
import type { Call } from '../call.ts'
import { table } from '../dev/banner.ts'
import { readOptions } from '../options.ts'
import { say } from '../paint.ts'
import { hostOf } from '../project/hosts.ts'
import { CONFIG_FILE } from '../project/load-config.ts'
import { install, type PackageManager, packageManagerOf } from '../project/package-manager.ts'
import { countsInObjects, STORE_OPTION } from '../store.ts'
import { type App, bundles, existingApp } from './app.ts'
import { confirm } from './confirm.ts'
import { type Additions, hasPackage, mergePackage, readPackage } from './package-json.ts'
import { tarballOf } from './source.ts'
import {
  appFiles,
  gatewayFiles,
  IGNORED,
  SCRIPTS,
  TSCONFIG,
  UNBUILT,
  WRANGLER,
} from './templates.ts'
import { type Existing, existingWorker } from './worker.ts'
import { type Files, textOf, withEndsOf, writeAll } from './write.ts'

const usage = (
  title: string,
) => `Writes a project into this folder: sluice.config.ts, wrangler.jsonc,
src/worker.ts, a first test in test/policies.test.ts, and tsconfig.json if there
is none. Adds scripts and packages to package.json and lines to .gitignore,
installs the packages, and builds the configuration (sluice build). Asks before
it overwrites a file. If the folder has a Worker, or an app of Express, Fastify,
Hono or Next.js, its files stay, and init prints the lines to add to it.

  ${title} [options]

  --store       redis (the default), or durable-objects: no database and no
                secret
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
  const manager = packageManagerOf(folder)
  const plan = await planOf(folder, await tarballOf(call.file), inObjects, manager)
  if (plan.existing.length > 0 && !options.force) await confirm(plan.existing)
  await writeAll(folder, plan.files)
  for (const name of Object.keys(plan.files)) say(`Wrote ${name}`)
  for (const name of plan.kept) {
    console.log(`Kept the script "${name}" of package.json. Sluice's is: ${plan.scripts[name]}`)
  }
  if (plan.prefixed)
    console.log(`Put sluice build into the script "build" of package.json: ${plan.prefixed}`)
  if (plan.missing) console.log(`\n${plan.missing}`)
  const old = oldNode()
  if (plan.needs && old) console.log(`\n${old}`)
  const mustInstall = plan.added.length > 0
  let problem: Error | undefined
  if (mustInstall && !options['no-install']) {
    console.log(`\nInstalling ${plan.added.join(', ')} …`)
    problem = await install(folder, manager).then(
      () => undefined,
      (error: Error) => error,
    )
    if (plan.needs && !problem) console.log(`\n${NO_SCRIPTS}`)
  }
  const isBuilt = plan.builds && !problem && (await built(folder))
  const rows = plan.steps.map(([script, about]) => {
    const isOther = plan.kept.includes(script) && script !== 'deploy'
    const command = isOther ? `${manager.exec} ${SCRIPTS[script]}` : `${manager.run} ${script}`
    return [script in SCRIPTS ? command : script, about]
  })
  if (plan.builds && !isBuilt) rows.unshift([`${manager.exec} sluice build`, `write ${BUILT}`])
  if (problem || (mustInstall && options['no-install']))
    rows.unshift([`${manager.name} install`, ''])
  console.log(`\nNext steps:\n\n${table(rows)}`)
  // Again, since the installation prints many lines.
  if (plan.needs && old) console.log(`\n${old}`)
  if (problem) throw problem
}

const BUILT = 'sluice.built.ts'

/** Writes the module that the written files import. Returns false if Sluice is not installed yet. */
async function built(folder: string): Promise<boolean> {
  const isNew = !existsSync(join(folder, BUILT))
  try {
    await writeBuilt(CONFIG_FILE, await hostOf(CONFIG_FILE))
  } catch {
    return false
  }
  if (isNew) say(`Wrote ${BUILT}`)
  return true
}

/** npm, pnpm and yarn name the packages whose scripts they did not run. */
const NO_SCRIPTS = `A notice about install scripts or build scripts of esbuild, sharp or workerd is harmless: wrangler
works without them.`

/** The oldest Node that wrangler and Vitest run on. */
const OLDEST_NODE = 22

/** What a user of an old Node must know before packages are installed. */
export const oldNode = (version = process.versions.node): string | undefined =>
  Number.parseInt(version, 10) < OLDEST_NODE
    ? `This is Node ${version}. wrangler and Vitest need Node ${OLDEST_NODE} or newer: install it before the next steps.`
    : undefined

/** A command or the name of a script, and what it does. */
type Step = [command: string, about: string]

interface Plan {
  files: Files
  /** The files that would be overwritten. */
  existing: string[]
  /** See `Merged`. */
  kept: string[]
  prefixed: string | undefined
  added: string[]
  /** The scripts that package.json gets. */
  scripts: Record<string, string>
  /** What the user must add to the own code. */
  missing: string | undefined
  steps: Step[]
  /** True if the packages need a newer Node than Sluice. */
  needs: boolean
  /** True if the files, or the lines to add, import the module of `sluice build`. */
  builds: boolean
}

/** Reads the folder, and plans all changes. @throws Error if something cannot be written */
async function planOf(
  folder: string,
  source: string | undefined,
  inObjects: boolean,
  { exec }: PackageManager,
): Promise<Plan> {
  const manifest = await textOf(join(folder, 'package.json'))
  if (manifest === undefined) {
    throw new Error('package.json: the file does not exist. To write one: npm init -y')
  }
  const fields = parsed(() => readPackage(manifest))
  const isBundled = bundles(fields.scripts?.build)
  const worker = await existingWorker(folder, inObjects, exec)
  const app =
    worker || inObjects
      ? undefined
      : existingApp(folder, (name) => hasPackage(fields, name), isBundled)
  const { wanted, missing, steps, additions } = app
    ? {
        wanted: app.files,
        missing: app.missing,
        steps: appSteps(app, exec),
        additions: APP_ADDITIONS,
      }
    : workerPlan(folder, worker, workerName(fields.name ?? basename(folder)), inObjects, exec)
  const builds = [...Object.values(wanted), missing].some((text) => text?.includes('sluice.built'))
  const merged = parsed(() =>
    mergePackage(manifest, { source, ...additions, builds: builds && isBundled }),
  )
  const files: Files = {}
  const existing: string[] = []
  for (const [name, text] of Object.entries(wanted)) {
    const before = await textOf(join(folder, name))
    const after = withEndsOf(before ?? manifest, text)
    if (before === after) continue
    if (before !== undefined) existing.push(name)
    files[name] = after
  }
  if (merged.text !== manifest) files['package.json'] = merged.text
  const ignore = (await textOf(join(folder, '.gitignore'))) ?? ''
  const more = withIgnored(ignore)
  if (more !== ignore) files['.gitignore'] = withEndsOf(ignore || manifest, more)
  const { kept, prefixed, added } = merged
  const { scripts = {} } = additions
  return { files, existing, kept, prefixed, added, scripts, missing, steps, needs: !app, builds }
}

/** The plan of a folder with a Worker, or for a Worker. */
function workerPlan(
  folder: string,
  worker: Existing | undefined,
  name: string,
  inObjects: boolean,
  exec: string,
) {
  const wanted: Files = worker?.hasPolicies
    ? {}
    : worker?.main
      ? appFiles(worker.main, worker.isGateway, inObjects)
      : gatewayFiles(name, inObjects, exec)
  if (worker) delete wanted[WRANGLER]
  if (existsSync(join(folder, TSCONFIG))) delete wanted[TSCONFIG]
  const { dev, check, test } = SCRIPTS as Record<string, string>
  const additions: Additions = worker?.hasPolicies
    ? { scripts: worker.isCf ? {} : { dev: dev! }, devDependencies: ['wrangler'] }
    : {
        scripts: worker?.isCf ? { check: check!, test: test! } : worker?.main ? UNBUILT : SCRIPTS,
        devDependencies: ['wrangler', 'vitest', ...(worker?.main ? [] : ['typescript'])],
      }
  const steps = workerSteps(inObjects, worker?.isCf ? undefined : exec).filter(
    ([command]) => !(command in SCRIPTS) || command in additions.scripts!,
  )
  return { wanted, missing: worker?.missing, steps, additions }
}

/** @throws Error if package.json cannot be read */
function parsed<T>(read: () => T): T {
  try {
    return read()
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

/** @param exec runs wrangler; `undefined` if cf deploys the Worker */
const workerSteps = (inObjects: boolean, exec: string | undefined): Step[] => [
  ['dev', `run the Worker with ${inObjects ? '' : 'a Redis and '}a demo origin on this machine`],
  ['test', 'run test/policies.test.ts'],
  ['check', 'find mistakes in sluice.config.ts'],
  ...(inObjects
    ? []
    : exec
      ? ([
          [
            `${exec} wrangler secret put UPSTASH_REDIS_REST_URL`,
            'name the database to deploy with',
          ],
          [`${exec} wrangler secret put UPSTASH_REDIS_REST_TOKEN`, 'and its token'],
        ] satisfies Step[])
      : ([
          ['', 'the Worker needs UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN as secrets'],
        ] satisfies Step[])),
  ['deploy', 'deploy the Worker'],
]

const APP_ADDITIONS: Additions = { scripts: { check: SCRIPTS.check! } }

const appSteps = ({ readsRedisUrl }: App, exec: string): Step[] => [
  ...(readsRedisUrl
    ? [['', 'set REDIS_URL=redis://localhost:6379 if you have a Redis, or:'] satisfies Step]
    : []),
  [`${exec} sluice bridge --port 8079 --token dev`, 'run a Redis for development on this machine'],
  ['', 'the app needs UPSTASH_REDIS_REST_URL=http://127.0.0.1:8079'],
  ['', 'and UPSTASH_REDIS_REST_TOKEN=dev'],
  ['check', 'find mistakes in sluice.config.ts'],
]
