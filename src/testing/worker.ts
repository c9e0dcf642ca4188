/** Runs the user's Worker in workerd. */
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import type { MiniflareOptions } from 'miniflare'
import { openFolder, type WorkerFolder } from './folder.ts'
import type { Running } from './running.ts'
import type { WranglerProject } from './wrangler.ts'

/** The entrypoint that sets the clock of the isolate. */
const ENTRYPOINT = 'SluiceTestClock'

/** Evaluated before the Worker, so that the Worker can only see the movable clock. */
const CLOCK_MODULE = `
  import { WorkerEntrypoint } from 'cloudflare:workers'
  const Real = Date
  let offset = 0
  const now = () => Real.now() + offset
  globalThis.Date = new Proxy(Real, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length > 0 ? args : [now()], newTarget),
    apply: () => new Real(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
  export class ${ENTRYPOINT} extends WorkerEntrypoint {
    async fetch(request) {
      offset = Number(await request.text())
      return new Response()
    }
  }
`

/**
 * @param stops gets what removes the files of the Worker
 * @throws Error if the Worker cannot be built or does not start
 */
export async function startWorker(
  project: WranglerProject,
  env: Record<string, unknown>,
  stops: (() => Promise<void>)[],
): Promise<Running> {
  const folder = await openFolder()
  stops.push(folder.remove)
  const { Miniflare, Log, LogLevel, convertV4MiniflareOptions } = project.miniflare
  const files = await bundle(project, folder)
  const { main, workers } = project.read()
  const [options, ...others] = workers
  const logs: string[] = []
  const all = {
    host: '127.0.0.1',
    port: 0,
    log: new Log(LogLevel.NONE),
    handleStructuredLogs: ({ message }: { message: string }) => void logs.push(message),
    workers: [
      {
        ...options,
        modules: modulesOf(files, main),
        modulesRoot: '/',
        bindings: { ...options!.bindings, ...env },
        unsafeDirectSockets: [{ host: '127.0.0.1', port: 0, entrypoint: ENTRYPOINT }],
      },
      ...others,
    ],
  }
  // Only Miniflare 5 converts them.
  const converted = () => (convertV4MiniflareOptions?.(all as never) ?? all) as MiniflareOptions
  let miniflare = folder.run(() => new Miniflare(converted()))
  const placeOf = async () => {
    const worker = await miniflare.ready
    return { worker, clock: await miniflare.unsafeGetDirectURL(undefined, ENTRYPOINT) }
  }
  let place = await placeOf().catch(async (cause: Error) => {
    await miniflare.dispose().catch(() => {})
    // workerd logs why the Worker does not start. Miniflare's error hides this in JSON, below advice about workerd.
    const [thrown] = logs
    if (thrown === undefined) {
      throw new Error(`worker: the Worker does not start: ${cause.message}`, { cause })
    }
    const reason = thrown
      .replace(/^service \S+: Uncaught (Error: (?=ConfigError: ))?/, '')
      .replace(/^(ConfigError: .*?)\n +at .*$/s, '$1')
    throw new Error(`worker: the Worker does not start: ${reason}`)
  })
  let offsetMs = 0

  const setOffset = async (ms: number) => {
    offsetMs = ms
    await (await fetch(place.clock, { method: 'POST', body: String(ms) })).arrayBuffer()
  }

  return {
    logs,
    fetch(url, init, { cf }) {
      const target = new URL(url, place.worker)
      const headers = new Headers(init.headers)
      if (cf) headers.set('mf-cf-blob', JSON.stringify(cf))
      if (target.origin !== place.worker.origin) headers.set('mf-original-url', target.href)
      const { pathname, search } = target
      return fetch(new URL(pathname + search, place.worker), { ...init, headers })
    },
    setOffset,
    async flush() {
      // A new isolate: no other way clears the variables of its modules. Durable Objects would keep their storage in it.
      if (options!.durableObjects) {
        await miniflare.dispose()
        miniflare = folder.run(() => new Miniflare(converted()))
      } else {
        await folder.run(() => miniflare.setOptions(converted()))
      }
      place = await placeOf()
      await setOffset(offsetMs)
    },
    stop: () => miniflare.dispose(),
  }
}

/** @returns the files of the bundle, by their paths in its folder */
async function bundle(project: WranglerProject, folder: WorkerFolder) {
  const outdir = join(folder.path, 'bundle')
  await folder.run(() => project.bundle(outdir))
  const names = await readdir(outdir, { recursive: true, withFileTypes: true })
  const paths = names
    .filter((file) => file.isFile() && !/\.map$|^README\.md$/.test(file.name))
    .map((file) => relative(outdir, join(file.parentPath, file.name)))
  return Promise.all(
    paths.map(async (path) => ({ path, contents: await readFile(join(outdir, path)) })),
  )
}

/** The modules of a Worker in the form of Miniflare 4, behind one that replaces the clock. */
function modulesOf(files: Awaited<ReturnType<typeof bundle>>, main: string) {
  const name = basename(main).replace(/\.\w+$/, '')
  const entry = files.find(({ path }) => [`${name}.js`, `${name}.mjs`].includes(path))?.path
  const wrapper = `
    import './sluice-clock.js'
    export * from './sluice-clock.js'
    export * from './${entry}'
    export { default } from './${entry}'
  `
  return [
    { type: 'ESModule', path: '/sluice-entry.js', contents: wrapper }, // the main module
    { type: 'ESModule', path: '/sluice-clock.js', contents: CLOCK_MODULE },
    ...files.map(({ path, contents }) => ({ type: typeOf(path), path: `/${path}`, contents })),
  ]
}

function typeOf(path: string): string {
  if (/\.m?js$/.test(path)) return 'ESModule'
  if (path.endsWith('.cjs')) return 'CommonJS'
  if (path.endsWith('.wasm')) return 'CompiledWasm'
  return path.endsWith('.bin') ? 'Data' : 'Text'
}
