/** The user's own wrangler: bundles the Worker, and reads its configuration. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'

/** The Worker to test. */
export interface TestWorker {
  /** The main file, relative to the working directory. Defaults to `main` of the wrangler configuration. */
  main?: string
  /**
   * The wrangler configuration, relative to the working directory. Defaults to the nearest wrangler.jsonc, wrangler.json or wrangler.toml
   * in the folder of `main`, or above it.
   */
  wranglerConfig?: string
  /** The environment of the wrangler configuration. Defaults to the top level. */
  environment?: string
}

/** A Worker in the form of Miniflare 4. */
export type WorkerOptions = Record<string, unknown> & {
  name?: string | undefined
  bindings?: Record<string, unknown>
  serviceBindings?: Record<string, string | { name?: unknown }>
  durableObjects?: Record<string, string | { className: string }>
}

/** The wrangler of a project, with a checked Worker. */
export type WranglerProject = ReturnType<typeof openProject>

const CLASS = 'SluiceSubject'
const CONFIGS = ['wrangler.jsonc', 'wrangler.json', 'wrangler.toml']

/** @throws Error if a file of the Worker does not exist, or wrangler is not installed */
export function openProject({ main, wranglerConfig, environment }: TestWorker) {
  const config = wranglerConfig
    ? existing('worker.wranglerConfig', wranglerConfig)
    : findConfig(main === undefined ? process.cwd() : dirname(existing('worker.main', main)))
  if (main === undefined && !config) {
    throw new Error(
      `worker: expected main, the file of the Worker, because there is no ${CONFIGS.join(', ')} in ${process.cwd()} or above it`,
    )
  }
  const entry = main === undefined ? undefined : existing('worker.main', main)
  const folder = dirname(config ?? entry!)
  const { manifest, require } = findWrangler(folder)
  const miniflare = require('miniflare') as typeof import('miniflare')
  const { compatibilityDate } = require('workerd') as { compatibilityDate: string }

  /** The main file, the options of the Worker without its code, and the other Workers of its configuration. */
  function read(): { main: string; workers: WorkerOptions[] } {
    if (!config) return { main: entry!, workers: [{ compatibilityDate }] }
    const wrangler = require('wrangler') as typeof import('wrangler')
    const found = wrangler.unstable_getMiniflareWorkerOptions(config, environment)
    const { name } = wrangler.unstable_readConfig({
      config,
      ...(environment && { env: environment }),
    })
    const others = (found.externalWorkers ?? []) as WorkerOptions[]
    const own = withServices({ ...(found.workerOptions as WorkerOptions), name }, others)
    return { main: entry ?? found.main!, workers: [own, ...others] }
  }

  return {
    miniflare,
    /** Bundles the Worker as for a deployment. @throws Error with the output of wrangler */
    async bundle(outdir: string) {
      const bin = (require(manifest) as { bin: { wrangler: string } }).bin.wrangler
      const args = ['deploy', ...(entry ? [entry] : []), '--dry-run', '--outdir', outdir].concat(
        config
          ? ['--config', config]
          : ['--name', 'worker', '--compatibility-date', compatibilityDate],
        environment ? ['--env', environment] : [],
      )
      await promisify(execFile)(process.execPath, [join(dirname(manifest), bin), ...args], {
        cwd: folder,
        env: { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_LOG: 'error' },
      }).catch(({ stdout = '', stderr = '', message }) => {
        const output = stripVTControlCharacters(`${stdout}${stderr}`).trim() || message
        throw new Error(`worker: wrangler cannot build ${entry ?? config}:\n${output}`)
      })
    },
    read,
    /** True if the Worker binds the class of `durableObjects()`. */
    countsInObjects(): boolean {
      try {
        const bound = Object.values(read().workers[0]!.durableObjects ?? {})
        return bound.some((one) => (typeof one === 'string' ? one : one.className) === CLASS)
      } catch {
        return false // the build reports the mistake
      }
    },
  }
}

/** The Worker with an answer for each service that does not run here. workerd does not start without all services. */
function withServices(worker: WorkerOptions, others: WorkerOptions[]): WorkerOptions {
  const running = new Set([worker, ...others].map(({ name }) => name))
  const services = Object.entries(worker.serviceBindings ?? {}).map(([binding, service]) => {
    const name = typeof service === 'object' ? service.name : service
    if (typeof name !== 'string' || running.has(name)) return [binding, service]
    const text = `The service ${name} does not run in this test.\n`
    return [binding, () => new Response(text, { status: 503 })]
  })
  return { ...worker, serviceBindings: Object.fromEntries(services) }
}

function existing(option: string, path: string): string {
  const file = resolve(path)
  if (!existsSync(file)) throw new Error(`${option}: the file ${file} does not exist`)
  return file
}

function findConfig(folder: string): string | undefined {
  const name = CONFIGS.find((name) => existsSync(join(folder, name)))
  if (name) return join(folder, name)
  const parent = dirname(folder)
  return parent === folder ? undefined : findConfig(parent)
}

/** Finds wrangler in the project of the Worker, or in that of the tests. Miniflare is the one that wrangler uses. */
function findWrangler(folder: string) {
  for (const from of [folder, process.cwd()]) {
    try {
      const manifest = createRequire(join(from, 'package.json')).resolve('wrangler/package.json')
      return { manifest, require: createRequire(manifest) }
    } catch {} // not installed there
  }
  throw new Error('sluice/testing needs wrangler: add it to the devDependencies of the project')
}
