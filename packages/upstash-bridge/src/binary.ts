import { spawnSync } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

/** How to run a server that is not part of the project. */
export type Binary = {
  file: string
  /** The name it must believe it was called by. */
  argv0: string
  env: Record<string, string>
}

/** A server that runs here. */
export type ServerBinary = Binary & {
  /** For people: `redis-server 7.0.15 from PATH`. */
  source: string
  /** A folder that only this process uses and that can go when the server has ended. */
  disposable?: string
}

/** Runs a binary and returns what it prints. Throws when it does not run. */
export function outputOf(binary: Binary, ...args: string[]): string {
  const { stdout, stderr, error } = spawnSync(binary.file, args, {
    argv0: binary.argv0,
    env: { ...process.env, ...binary.env },
    encoding: 'utf8',
    timeout: 5000,
  })
  if (error) throw error
  return `${stdout}${stderr}`
}

/** The version that a binary prints; `undefined` when it does not run. */
export function versionIfAny(
  versionOf: (binary: Binary) => string,
  binary: Binary,
): string | undefined {
  try {
    return versionOf(binary)
  } catch {
    return undefined
  }
}

/** The first executable file of that name in these folders. */
export async function findFile(name: string, folders: string[]): Promise<string | undefined> {
  for (const folder of folders) {
    if (folder && (await runnable(join(folder, name)))) return join(folder, name)
  }
}

function runnable(file: string): Promise<boolean> {
  const yes = () => true
  return access(file, constants.X_OK).then(yes, () => false)
}
