/** Two terminals in a folder: what a reader of a page types. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

/** Commands that run until Ctrl-C. A reader leaves them running, and types the next command in a second terminal. */
const SERVERS = /^(?:\w+=\S* )*(?:npx sluice (?:dev|bridge)|npx wrangler dev|caddy run|nginx) ?/

/** Runs a command with the folder and the variables that the commands before it have left. */
const WITH_STATE = `
. "$STATE/variables" 2>/dev/null
cd "$(cat "$STATE/folder")"
eval "$1"
status=$?
export -p > "$STATE/variables"
pwd > "$STATE/folder"
exit $status`

/** How long a server may take until it listens, or prints something. */
const SERVER_MS = 60_000

/** @throws Error with a message if something does not hold in time */
export async function until(holds: () => Promise<boolean>, message: () => Promise<string>) {
  for (let waited = 0; waited < SERVER_MS; waited += 50) {
    if (await holds()) return
    await setTimeout(50)
  }
  throw new Error(await message())
}

interface Ended {
  output: string
  status: number
}

/** @param env the variables of the first command */
export async function openSession(folder: string, env: NodeJS.ProcessEnv) {
  const state = await mkdtemp(join(tmpdir(), 'sluice-session-'))
  await writeFile(join(state, 'folder'), folder)
  const children: ChildProcess[] = []
  /** The output of the last server. */
  let log = join(state, 'none')

  /** Starts a command in a process group of its own. A file takes its output, since processes in the background may keep it open. */
  async function start(command: string, more: NodeJS.ProcessEnv) {
    const path = join(state, `output-${children.length}`)
    const file = await open(path, 'w')
    const child = spawn('bash', ['-c', WITH_STATE, 'bash', command], {
      env: { ...env, ...more, STATE: state, CURL_HOME: state },
      stdio: ['ignore', file.fd, file.fd],
      detached: true,
    })
    children.push(child)
    const ended = once(child, 'exit')
    await file.close()
    return { path, ended, child }
  }

  /** Waits until something listens at each port of this machine that a command names. */
  async function listening(command: string) {
    for (const [, port] of command.matchAll(/(?:127\.0\.0\.1|localhost):(\d+)/g)) {
      await until(
        () => accepts(Number(port)),
        async () => `Nothing listens at port ${port}, for ${command}`,
      )
    }
  }

  return {
    /** Runs a command. Returns undefined for a server, which goes on. */
    async run(command: string, more: NodeJS.ProcessEnv = {}): Promise<Ended | undefined> {
      if (/\bcurl /.test(command)) await listening(command)
      const { path, ended, child } = await start(command, more)
      if (SERVERS.test(command) && !command.endsWith('&')) {
        log = path
        const early = await Promise.race([ended, setTimeout(500)])
        if (early) throw new Error(`${command} has ended:\n${await readFile(path, 'utf8')}`)
        return undefined
      }
      await ended
      return { output: await readFile(path, 'utf8'), status: child.exitCode ?? 1 }
    },
    /** The file of options that curl reads. */
    curlrc: join(state, '.curlrc'),
    /** What the last server has printed. */
    printed: () => readFile(log, 'utf8').catch(() => ''),
    folder: async () => (await readFile(join(state, 'folder'), 'utf8')).trim(),
    async close() {
      // As Ctrl-C: each server ends what it has started.
      const groups = children.map(({ pid }) => -pid!)
      for (const group of groups) kill(group, 'SIGTERM')
      for (let waited = 0; waited < 5000 && groups.some((group) => kill(group, 0)); waited += 50) {
        await setTimeout(50)
      }
      for (const group of groups) kill(group, 'SIGKILL')
      await rm(state, { recursive: true })
    },
  }
}

export type Session = Awaited<ReturnType<typeof openSession>>

function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false // It has ended.
  }
}

const accepts = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket.destroy().destroyed))
    socket.once('error', () => resolve(false))
  })
