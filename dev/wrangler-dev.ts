import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { wrangler } from './build.ts'
import { afterDeath } from './watchdog.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

export interface DevWorker {
  stop(): Promise<void>
  /** Settles when the Worker ends by itself and does not come back. */
  ended: Promise<string>
}

/**
 * `wrangler dev` on the Worker, which reloads it whenever a source or the configuration changes. wrangler itself gives up
 * on a configuration that throws: then it is started again at the next change. Resolves when the Worker answers.
 */
export async function startDevWorker(
  port: number,
  variables: Record<string, string>,
): Promise<DevWorker> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  const file = join(folder, 'vars')
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  await writeFile(file, lines.join('\n'), { mode: 0o600 }) // not on the command line, which everybody can read

  let child: ChildProcess | undefined
  let callOff = () => {}
  let stopping = false
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()

  function start() {
    const flags = [
      '--ip',
      '127.0.0.1',
      '--port',
      String(port),
      '--inspector-port',
      '0',
      '--env-file',
      file,
    ]
    const quiet = ['--log-level', 'warn', '--show-interactive-dev-session=false']
    child = spawn(process.execPath, [wrangler, 'dev', ...flags, ...quiet], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
      detached: true, // a group of its own: Ctrl-C reaches us, and we stop everything in order
    })
    callOff = afterDeath('kill -TERM "-$1" 2>/dev/null; rm -rf "$2"', String(child.pid), folder)
    child.once('exit', (code, signal) => void exited(code, signal))
  }

  async function exited(code: number | null, signal: NodeJS.Signals | null) {
    await stopGroup() // its leader may have been killed alone
    if (stopping) return
    const wrong = await configurationError()
    if (!wrong) return end(`the Worker ended (${signal ?? `code ${code}`})`)
    console.error(`\nsluice.config.ts: ${wrong}\nThe Worker starts again when you save it.`)
    await fileChanged(join(root, 'sluice.config.ts'))
    if (!stopping) start()
  }

  async function stopGroup() {
    callOff()
    const { pid } = child!
    if (!pid || !signalGroup(pid, 'SIGTERM')) return
    for (let waited = 0; waited < 3000; waited += 50) {
      if (!signalGroup(pid, 0)) return
      await sleep(50)
    }
    signalGroup(pid, 'SIGKILL')
  }

  const stop = async () => {
    stopping = true
    await stopGroup()
    await rm(folder, { recursive: true, force: true })
  }

  start()
  await Promise.race([
    answers(`http://127.0.0.1:${port}/_sluice/health`),
    ended.then((reason) => Promise.reject(new Error(reason))),
  ])
  return { stop, ended }
}

/** Whether anything of the group was there to get it. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Waits until the Worker says how it is, healthy or misconfigured. */
async function answers(url: string): Promise<void> {
  const deadline = Date.now() + 60_000
  const read = async () => (await (await fetch(url)).json()) as { status?: unknown }
  while (!(await read().catch(() => undefined))?.status) {
    if (Date.now() > deadline) throw new Error('the Worker did not start within a minute')
    await sleep(100)
  }
}

/** What the configuration, as it is on disk now, throws; in a process of its own, since a module is read only once. */
async function configurationError(): Promise<string | undefined> {
  const program =
    "import('./sluice.config.ts').catch((error) => { console.log(error.message); process.exitCode = 1 })"
  const check = spawn(process.execPath, ['-e', program], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  check.stdout.on('data', (chunk) => {
    said += chunk
  })
  const [code] = await once(check, 'close')
  return code === 0 ? undefined : said.trim() || 'cannot be loaded'
}

async function fileChanged(path: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const watcher = watch(path, () => resolve())
  await promise
  watcher.close()
  await sleep(100) // until an editor has written it whole
}
