import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { inject, onTestFinished } from 'vitest'

export interface ConsumerOptions {
  /** The text of each file, by its path. */
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
}

/** The environment without npm's own variables, which would install into this repository. Programs run with this Node. */
const env: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|VITEST|NODE_ENV|NODE_OPTIONS)/.test(name),
    ),
  ),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
}

/** Creates a project outside the repository, and installs the packed package into it. Removes it after the test. */
export async function createConsumer({ files, packages = [] }: ConsumerOptions): Promise<Consumer> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-consumer-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  const execute = async (file: string, args: string[]) => {
    try {
      const { stdout } = await promisify(execFile)(file, args, { cwd: folder, env })
      return stdout
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}${stderr}`)
    }
  }
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund']
  await execute('npm', [...install, inject('tarball'), ...packages])
  return {
    folder,
    run: (name, ...args) => execute(join(folder, 'node_modules/.bin', name), args),
    node: (...args) => execute(process.execPath, args),
  }
}
