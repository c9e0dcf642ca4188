import { spawnSync } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

/** How to run an external server program. */
export type Binary = {
  file: string
  /** The value of argv[0], by which a multi-call binary selects what it does. */
  argv0: string
  env: Record<string, string>
}

/** A server binary that runs on this machine. */
export type ServerBinary = Binary & {
  /** Description for messages, such as `redis-server 7.0.15 from PATH`. */
  source: string
  /** A folder that only this process uses. Delete it when the server has ended. */
  disposable?: string
}

/** Runs a binary and returns its output (stdout and stderr). Throws when it cannot run. */
export function outputOf(binary: Binary, ...args: string[]): string {
  const { stdout, stderr, error } = spawnSync(binary.file, args, {
    argv0: binary.argv0,
    env: { ...process.env, ...binary.env },
    encoding: 'utf8',
    timeout: 60_000, // for a binary that hangs: a busy machine takes seconds to start one
  })
  if (error) throw error
  return `${stdout}${stderr}`
}

/** What binaries have answered. To run one stops a large process for tens of ms. */
const versions = new Map<string, string>()

/** The version of a binary; `undefined` when it cannot run. */
export function versionIfAny(
  versionOf: (binary: Binary) => string,
  binary: Binary,
): string | undefined {
  try {
    const version = versions.get(binary.file) ?? versionOf(binary)
    versions.set(binary.file, version)
    return version
  } catch {
    return undefined
  }
}

/** The first executable file with this name in the folders. */
export async function findFile(name: string, folders: string[]): Promise<string | undefined> {
  for (const folder of folders) {
    if (folder && (await runnable(join(folder, name)))) return join(folder, name)
  }
}

function runnable(file: string): Promise<boolean> {
  const yes = () => true
  return access(file, constants.X_OK).then(yes, () => false)
}
