/** The processes of `sluice dev`: one runs workerd, and one reads the configuration. Both are this program, called with `PROCESS`. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Additions } from '../project/bundle.ts'
import type { Description } from './describe.ts'
import type { FromHost, HostOptions, ToHost } from './host.ts'
import type { FromReader } from './read.ts'

/** The first argument of a process that this program starts. The second one is a name in `processes`. */
export const PROCESS = '--process'

/** Runs the process with this name. */
export const processes: Record<string, () => Promise<unknown>> = {
  host: () => import('./host.ts').then(({ runHost }) => runHost()),
  read: () => import('./read.ts').then(({ runReader }) => runReader(process.argv.slice(4))),
}

/** How a process is started. */
export interface Program extends Additions {
  /** The file to run: cli/main.ts, or its bundle. */
  file: string
  /** The folder of the project. */
  project: string
  /** The check that lists all problems, for messages. */
  check: string
}

/**
 * Reads the configuration in a separate process (read.ts).
 * @param writes true to write the module of `sluice build`, too
 */
export async function readConfiguration(
  { file, project, check, objects = '' }: Program,
  writes: boolean,
): Promise<Description> {
  const config = join(project, 'sluice.config.ts')
  const args = [PROCESS, 'read', config, project, check, objects, writes ? 'build' : '']
  // A folder of its own, because a process that is killed does not remove its files.
  const folder = await mkdtemp(join(tmpdir(), 'sluice-read-'))
  const child = fork(file, args, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, TMPDIR: folder },
    timeout: 30_000, // a busy machine needs a multiple of the usual second
    killSignal: 'SIGKILL',
  })
  const exited = once(child, 'exit')
  const end = () => {
    child.kill('SIGKILL')
    // On a busy machine the process may create a file after the signal, while this removes the folder.
    for (let attempt = 0; existsSync(folder) && attempt < 10; attempt++) {
      try {
        rmSync(folder, { recursive: true })
      } catch {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
      }
    }
  }
  process.once('exit', end)
  const [answer] = (await Promise.race([
    once(child, 'message'),
    exited.then(() => [undefined]),
  ])) as [FromReader | undefined]
  child.kill('SIGKILL')
  await exited // it may still write into its folder
  process.off('exit', end)
  await rm(folder, { recursive: true })
  if (!answer)
    throw new Error('sluice.config.ts: the file does not load within 30 s, or ends the process')
  if ('problem' in answer) throw new Error(answer.problem)
  return answer.description
}

/** Starts the process that runs workerd (host.ts). */
export function startHost({ file }: Program) {
  const child: ChildProcess = fork(file, [PROCESS, 'host'], {
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
    async start(script: string, options: HostOptions) {
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
