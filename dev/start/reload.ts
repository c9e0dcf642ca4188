import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, type FSWatcher, watch } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { WorkerOptions } from '../worker.ts'
import { bundle, foldersOf } from './bundle.ts'
import type { Description } from './describe.ts'
import type { FromHost, ToHost } from './host.ts'
import { type FrontDoor, startProxy, type Target } from './proxy.ts'
import type { FromReader } from './read.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const SETTINGS = ['sluice.config.ts', '.dev.vars', 'wrangler.toml']
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

/** The bindings and settings of a Worker. */
export type RuntimeContext = Omit<WorkerOptions, 'port' | 'outbound' | 'onLog'>

/**
 * Runs the Worker behind a port that stays open, and replaces it when the configuration or the source changes. After an invalid
 * change the last valid Worker keeps running.
 * @param runtime returns the bindings for a configuration; called after each change
 * @param log receives one line for each change
 * @throws Error when the first configuration is invalid
 */
export async function startReloading(
  port: number,
  runtime: (description: Description) => Promise<RuntimeContext>,
  log: (line: string) => void,
): Promise<ReloadingWorker> {
  const host = startHost()
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  host.exited.then(() => end('the Worker ended'))
  let proxy: FrontDoor | undefined
  let running: { made: string; id: number; target: Target } | undefined
  /** The folders of the bundle; `undefined` if bundling failed. */
  let folders: string[] | undefined
  let retry: NodeJS.Timeout | undefined
  let problem: string | undefined
  let changed = false
  let stopping = false

  /** Builds the Worker from the files and sends new requests to it. Returns `undefined` if nothing has changed. */
  async function load(): Promise<Description | undefined> {
    folders = undefined
    if (!existsSync(join(root, 'sluice.config.ts'))) {
      throw new Error('sluice.config.ts: the file does not exist')
    }
    const { script, files } = await bundle(root)
    folders = foldersOf(files)
    const description = await readConfiguration()
    const options = await runtime(description)
    const made = JSON.stringify([script, options])
    if (made === running?.made && problem === undefined) return undefined
    if (made === running?.made) return description
    if (changed) return undefined // load again: the bundle and the description may differ
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
    const { promise: idle, resolve } = Promise.withResolvers<void>()
    target.onIdle = resolve
    if (target.inFlight > 0) await Promise.race([idle, sleep(GRACE_MS, undefined, { ref: false })])
    host.stop(id)
  }

  let busy = false
  async function reload() {
    changed = true
    if (busy) return
    busy = true
    clearTimeout(retry)
    while (changed && !stopping) {
      await sleep(QUIET_MS)
      changed = false
      await load().then(
        (description) => {
          if (changed) return
          problem = undefined
          if (description) log(`Reloaded: ${summary(description)}.`)
        },
        ({ message }: Error) => {
          if (changed || stopping) return
          if (message !== problem) {
            log(`Not reloaded: ${message}. The last valid configuration stays active.`)
          }
          problem = message
        },
      )
      if (folders) watching.update(folders)
    }
    if (!folders && !stopping) retry = setTimeout(() => void reload(), RETRY_MS).unref()
    busy = false
  }

  const watching = watchFolders(() => void reload())
  try {
    const description = (await load())!
    watching.update(folders!)
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

/** Reads the configuration in a separate process (read.ts). */
async function readConfiguration(): Promise<Description> {
  const program = fileURLToPath(new URL('read.ts', import.meta.url))
  const child = fork(program, [join(root, 'sluice.config.ts'), root], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  const [answer] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => [undefined]),
  ])) as [FromReader | undefined]
  if (!answer)
    throw new Error('sluice.config.ts: the file does not load within 10 s, or ends the process')
  if ('problem' in answer) throw new Error(answer.problem)
  return answer.description
}

/** Starts the process that runs workerd (host.ts). */
function startHost() {
  const program = fileURLToPath(new URL('host.ts', import.meta.url))
  const child: ChildProcess = fork(program, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
    detached: true, // a separate process group: Ctrl-C reaches only this process, which stops the parts in order
  })
  const exited = once(child, 'exit').then(() => signalGroup(child.pid!, 'SIGKILL')) // ends workerd, in case only host.ts was killed
  let last = 0
  const send = (message: ToHost) => {
    if (child.connected) child.send(message)
  }
  return {
    exited,
    async start(script: string, options: RuntimeContext) {
      const id = ++last
      const answered = new Promise<FromHost>((resolve, reject) => {
        const listen = (message: FromHost) => {
          if (message.id !== id) return
          child.off('message', listen)
          resolve(message)
        }
        child.on('message', listen)
        exited.then(() => reject(new Error('the Worker ended')))
      })
      send({ do: 'start', id, script, options })
      const answer = await answered
      if ('error' in answer) throw new Error(`the Worker does not start: ${answer.error}`)
      return answer
    },
    stop: (id: number) => send({ do: 'stop', id }),
    async end() {
      if (child.connected) child.disconnect()
      await Promise.race([exited, sleep(5000)])
      signalGroup(child.pid!, 'SIGKILL')
    },
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(-pid, signal)
  } catch {
    // the process has already ended
  }
}

/** Keeps a connection to a port, and calls `onClosed` when nothing listens there any more. */
function watchPort(port: number, onClosed: () => void) {
  const socket = connect(port, '127.0.0.1')
  socket.unref()
  let connected = false
  socket.on('connect', () => {
    connected = true
  })
  socket.on('error', () => {})
  socket.resume()
  socket.on('close', () => {
    if (connected) watchPort(port, onClosed)
    else onClosed()
  })
}

/** Watches the settings files, the source, and the folders of the files that the configuration imports. */
function watchFolders(changed: () => void) {
  const add = (folder: string, recursive: boolean, isOurs: (name: string) => boolean) => {
    const watcher = watch(folder, { recursive }, (_, name) => {
      if (name !== null && isOurs(name)) changed()
    })
    return watcher.on('error', () => {})
  }
  const isSource = (name: string) => /\.([cm]?[jt]s|lua|json)$/.test(name)
  const isRoot = (name: string) => SETTINGS.includes(name) || /\.[cm]?[jt]s$/.test(name)
  const src = join(root, 'src')
  const known = [
    add(root, false, isRoot),
    add(src, true, isSource),
    add(join(root, 'lua'), true, isSource),
  ]
  let others: FSWatcher[] = []
  const closeAll = (watchers: FSWatcher[]) => {
    for (const watcher of watchers) watcher.close()
  }
  return {
    /** Replaces the watchers of the imported folders. A folder may have been removed and created again. */
    update(folders: string[]) {
      closeAll(others)
      others = folders
        .filter((folder) => `${folder}/` !== root && !`${folder}/`.startsWith(`${src}/`))
        .flatMap((folder) => {
          try {
            return [add(folder, false, isSource)]
          } catch {
            return [] // the folder has been removed
          }
        })
    },
    close: () => closeAll([...known, ...others]),
  }
}
