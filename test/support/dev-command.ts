/** Runs commands of `sluice` and scripts of this repository, in this process or in a process of their own. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { format } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import parseArguments from 'string-argv'
import { main as runExplain } from '../../cli/explain/cli.ts'
import { run as runCommand } from '../../cli/run.ts'

/** The root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Makes a temporary folder for configurations. `write` creates a file in it and returns its path. */
export async function configFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-configs-'))
  return {
    folder,
    async write(name: string, text: string): Promise<string> {
      const file = join(folder, `${name}.mts`)
      await writeFile(file, text)
      return file
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

export type ConfigFolder = Awaited<ReturnType<typeof configFolder>>

export interface RunOptions {
  /** The standard input. */
  input?: string | Uint8Array
  env?: Record<string, string>
  /** The folder in which the command runs. */
  cwd?: string
}

export interface Ended {
  code: number
  stdout: string
  stderr: string
}

const EVENTS = ['exit', 'SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection']
const LISTENED = EVENTS as NodeJS.Signals[]
let before: Promise<unknown> = Promise.resolve()

/** Runs a command in this process, after the commands before it, and returns what it prints and its exit code. */
export function inProcess(command: () => Promise<unknown>, options: RunOptions = {}) {
  const ended = before.then(() => captured(command, options))
  before = ended.catch(() => {})
  return ended
}

async function captured(command: () => Promise<unknown>, options: RunOptions): Promise<Ended> {
  const { input = '', env = {}, cwd } = options
  const out = { stdout: '', stderr: '' }
  const { log, error } = console
  const { exit, exitCode } = process
  const kept = { env: { ...process.env }, cwd: process.cwd() }
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin')!
  const writes = [process.stdout.write, process.stderr.write] as const
  const listeners = LISTENED.map((event) => process.listeners(event))
  const streamed = (name: keyof typeof out) => (text: unknown) => {
    out[name] += String(text)
    return true
  }
  console.log = (...values) => streamed('stdout')(`${format(...values)}\n`)
  console.error = (...values) => streamed('stderr')(`${format(...values)}\n`)
  process.stdout.write = streamed('stdout')
  process.stderr.write = streamed('stderr')
  const given = Readable.from(input.length > 0 ? [Buffer.from(input)] : [])
  Object.defineProperty(process, 'stdin', { ...stdin, get: () => given })
  process.exitCode = undefined
  Object.assign(process.env, env)
  try {
    if (cwd) process.chdir(cwd)
    const exited = new Promise<number>((resolve) => {
      process.exit = ((code = 0) => resolve(Number(code))) as typeof process.exit
    })
    const code = await Promise.race([exited, command().then(() => Number(process.exitCode ?? 0))])
    return { code, ...out }
  } finally {
    Object.assign(console, { log, error })
    ;[process.stdout.write, process.stderr.write] = writes
    Object.defineProperty(process, 'stdin', stdin)
    Object.assign(process, { exit, exitCode })
    process.chdir(kept.cwd)
    for (const name of Object.keys(env)) delete process.env[name]
    Object.assign(process.env, kept.env)
    for (const [at, event] of LISTENED.entries()) {
      for (const one of process.listeners(event)) {
        if (!listeners[at]!.includes(one)) process.off(event, one)
      }
    }
  }
}

/** Runs `sluice` in this process. */
export const sluice = (args: string[], options?: RunOptions, file = 'cli/main.ts') =>
  inProcess(() => runCommand(args, join(root, file)), options)

/** Undoes the limit of the heap that `sluice replay` sets for its process, which is this one. */
export function restoreHeap() {
  for (const flag of ['heap-growing-percent=0', 'semi-space-growth-factor=2']) {
    setFlagsFromString(`--${flag}`)
  }
}

/** Runs `sluice explain` in this process, with arguments as in a shell. */
export const explain = (args: string, env: Record<string, string> = {}) =>
  inProcess(() => runExplain(parseArguments(args)), { env })

/** Runs a program in the repository until it exits. */
export async function run(command: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}
