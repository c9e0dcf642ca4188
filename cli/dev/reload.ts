import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bundle } from '../project/bundle.ts'
import { readWrangler, type WranglerConfig } from '../project/wrangler-config.ts'
import { type Program, readConfiguration, startHost } from './children.ts'
import { type Description, NO_CONFIGURATION } from './describe.ts'
import type { HostOptions } from './host.ts'
import { type FrontDoor, startProxy, type Target } from './proxy.ts'
import { watchFolders, watchPort } from './watch.ts'

/** Wait after a change, in ms, so that editors can finish writing. */
const QUIET_MS = 100
/** Interval in ms between attempts after a failed bundle: a missing file may appear in a folder that is not watched yet. */
const RETRY_MS = 1_000
/** Maximum time in ms that a replaced Worker keeps running for its requests in flight. */
const GRACE_MS = 60_000

export interface ReloadingWorker {
  description: Description
  /** Resolves with the reason when workerd ends unexpectedly. */
  ended: Promise<string>
  stop(): Promise<void>
}

export interface Reloading {
  port: number
  program: Program
  /** False if the project has no sluice.config.ts: the Worker contains its policies. */
  configured: boolean
  /** Returns the bindings for a configuration. Called after each change. */
  runtime(description: Description, wrangler: WranglerConfig): Promise<HostOptions>
  /** Receives one line for each change. */
  log(line: string): void
}

/**
 * Runs the Worker of a project behind a port that stays open, and replaces it when the configuration or the source changes. After an
 * invalid change the last valid Worker keeps running.
 * @throws Error when the first configuration is invalid
 */
export async function startReloading(options: Reloading): Promise<ReloadingWorker> {
  const { port, program, configured, runtime, log } = options
  const { project } = program
  const host = startHost(program)
  let end: (reason: string) => void = () => {}
  const ended = new Promise<string>((resolve) => {
    end = resolve
  })
  host.exited.then(() => end('the Worker ended'))
  let proxy: FrontDoor | undefined
  let running: { made: string; id: number; target: Target } | undefined
  /** False if bundling failed. */
  let isBundled = false
  let retry: NodeJS.Timeout | undefined
  let problem: string | undefined
  let changed = false
  let stopping = false

  /** Builds the Worker from the files, and sends new requests to it if it differs from the one that runs. */
  async function load(): Promise<Description> {
    isBundled = false
    if (configured && !existsSync(join(project, 'sluice.config.ts'))) {
      throw new Error('sluice.config.ts: the file does not exist')
    }
    const wrangler = await readWrangler(project)
    let reading: Promise<Description> | undefined
    const read = (writes: boolean) => {
      reading ??= readConfiguration(program, writes)
      return reading
    }
    const file = join(project, 'sluice.built.ts')
    const built = configured ? { file, write: () => read(true) } : undefined
    const bundling = bundle(project, wrangler, { ...program, built })
    const { script, files } = await bundling.catch(async (error) => {
      await reading // its problem is the cause
      throw error
    })
    isBundled = true
    watching.update(files)
    const description = configured ? await read(false) : NO_CONFIGURATION
    const options = await runtime(description, wrangler)
    const made = JSON.stringify([script, options])
    // After another change the bundle and the description may differ.
    if (running && (made === running.made || changed)) return description
    const { id, port: worker } = await host.start(script, options)
    const before = running
    running = { made, id, target: { port: worker, inFlight: 0 } }
    if (proxy) proxy.use(running.target)
    else proxy = await startProxy(port, running.target)
    watchPort(worker, () => {
      if (!stopping && running?.target.port === worker) end('the Worker ended')
    })
    if (before) void retire(before.id, before.target)
    return description
  }

  async function retire(id: number, target: Target) {
    const idle = new Promise<void>((resolve) => {
      target.onIdle = resolve
    })
    if (target.inFlight > 0) await Promise.race([idle, sleep(GRACE_MS, undefined, { ref: false })])
    host.stop(id)
  }

  /** Loads until no file has changed meanwhile: it may have been read half written. */
  async function loadAll(): Promise<Description> {
    for (;;) {
      changed = false
      try {
        const description = await load()
        if (!changed || stopping) return description
      } catch (error) {
        if (!changed || stopping) throw error
      }
      await sleep(QUIET_MS)
    }
  }

  let busy = true
  /** The Worker that the last line is about. */
  let logged: string | undefined
  async function reload() {
    changed = true
    if (busy) return
    busy = true
    clearTimeout(retry)
    await sleep(QUIET_MS)
    await loadAll().then(
      (description) => {
        if (problem !== undefined || logged !== running!.made) {
          const { length } = description.findings
          const found = length > 0 ? ` The linter finds ${length}: ${program.check}` : ''
          log(`Reloaded: ${configured ? summary(description) : 'the Worker'}.${found}`)
        }
        problem = undefined
        logged = running!.made
      },
      ({ message }: Error) => {
        if (stopping) return
        if (message !== problem) {
          log(`Not reloaded: ${message}. The last valid configuration stays active.`)
        }
        problem = message
      },
    )
    if (!isBundled && !stopping) retry = setTimeout(() => void reload(), RETRY_MS).unref()
    busy = false
  }

  const watching = watchFolders(project, () => void reload())
  try {
    const description = await load().catch((error) => {
      if (!changed) throw error
      return loadAll()
    })
    logged = running!.made
    busy = false
    if (changed) void reload()
    return {
      description,
      ended,
      async stop() {
        stopping = true
        clearTimeout(retry)
        watching.close()
        proxy?.close()
        await host.end()
      },
    }
  } catch (error) {
    stopping = true
    watching.close()
    await host.end()
    throw error
  }
}

function summary({ policies }: Description): string {
  const names = policies.map(([name]) => name)
  if (names.length === 0) return 'sluice.config.ts has no policies'
  return `${names.length} ${names.length === 1 ? 'policy' : 'policies'} (${names.join(', ')})`
}
