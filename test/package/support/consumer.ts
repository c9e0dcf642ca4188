import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { inject, onTestFinished } from 'vitest'

export interface ConsumerOptions {
  /** The text of each file, by its path. Without a package.json, `npm init` writes one. */
  files: Record<string, string>
  /** Packages to install besides the tarball, such as `hono@4.13.19`. */
  packages?: string[]
}

export interface Consumer {
  folder: string
  /**
   * Runs a program of the project's node_modules/.bin. Returns its standard output.
   * @throws Error with its output if it fails
   */
  run(name: string, ...args: string[]): Promise<string>
  /** Runs this Node in the project. Returns its standard output. */
  node(...args: string[]): Promise<string>
  /** Runs npm in the project. Returns its standard output. */
  npm(...args: string[]): Promise<string>
  /** Starts a program of the project's node_modules/.bin, with further variables. Kills it after the test, with the processes that it started. */
  start(name: string, args: string[], variables: Record<string, string>): StartedProgram
}

export interface StartedProgram {
  /** Rejects with the output when the program exits. */
  exited: Promise<never>
}

/**
 * The environment without npm's own variables, which would install into this repository, and without a database. Programs run with this Node, and send nothing to
 * their vendors.
 */
export const consumerEnv: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|REDIS_URL|VITEST|NODE_ENV|NODE_OPTIONS|FORCE_COLOR)/.test(name),
    ),
  ),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  NO_COLOR: '1',
  DENO_NO_UPDATE_CHECK: '1',
  WRANGLER_SEND_METRICS: 'false',
  NEXT_TELEMETRY_DISABLED: '1',
}

/** Runs a program in a folder, with further variables. Returns its standard output. @throws Error with its output if it fails */
export async function runIn(
  folder: string,
  file: string,
  args: string[],
  variables: Record<string, string> = {},
): Promise<string> {
  try {
    const env = { ...consumerEnv, ...variables }
    const { stdout } = await promisify(execFile)(file, args, { cwd: folder, env })
    return stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  }
}

/** Creates a project outside the repository, and installs the packed package into it. Returns its folder, which the caller removes. */
export async function installConsumer({ files, packages = [] }: ConsumerOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-consumer-'))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  if (!files['package.json']) await runIn(folder, 'npm', ['init', '-y'])
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund']
  await runIn(folder, 'npm', [...install, inject('tarball'), ...packages])
  return folder
}

/** Starts a program in a folder, with further variables. */
export function startIn(
  folder: string,
  file: string,
  args: string[],
  variables: Record<string, string> = {},
): StartedProgram & { stop(): Promise<void> } {
  const env = { ...consumerEnv, ...variables }
  const child = spawn(file, args, { cwd: folder, env, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const closed = once(child, 'close')
  const exited = closed.then(() => {
    throw new Error(`${basename(file)} ${args.join(' ')} exited:\n${output}`)
  })
  exited.catch(() => {}) // Also after the test.
  return {
    exited,
    /** Kills it, with the processes that it started. */
    async stop() {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {} // It has exited.
      await closed.catch(() => {})
    },
  }
}

/** Creates a project outside the repository, and installs the packed package into it. Removes it after the test. */
export async function createConsumer(options: ConsumerOptions): Promise<Consumer> {
  const folder = await installConsumer(options)
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const bin = (name: string) => join(folder, 'node_modules/.bin', name)
  const start = (name: string, args: string[], variables: Record<string, string>) => {
    const { exited, stop } = startIn(folder, bin(name), args, variables)
    onTestFinished(stop)
    return { exited }
  }
  return {
    folder,
    run: (name, ...args) => runIn(folder, bin(name), args),
    node: (...args) => runIn(folder, process.execPath, args),
    npm: (...args) => runIn(folder, 'npm', args),
    start,
  }
}
