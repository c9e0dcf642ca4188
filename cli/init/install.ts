import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** A package manager. */
export interface Installer {
  name: string
  /** The command that runs a script. */
  run: string
}

const INSTALLERS: [lockfile: string, Installer][] = [
  ['pnpm-lock.yaml', { name: 'pnpm', run: 'pnpm run' }],
  ['yarn.lock', { name: 'yarn', run: 'yarn run' }],
  ['bun.lock', { name: 'bun', run: 'bun run' }],
  ['bun.lockb', { name: 'bun', run: 'bun run' }],
]

/** The package manager of a project, by its lockfile. Defaults to npm. */
export const installerOf = (folder: string): Installer =>
  INSTALLERS.find(([file]) => existsSync(join(folder, file)))?.[1] ?? {
    name: 'npm',
    run: 'npm run',
  }

/** Installs the packages of package.json. @throws Error if this fails */
export async function install(folder: string, { name }: Installer): Promise<void> {
  const child = spawn(name, ['install'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  const code = await new Promise((resolve) => {
    child.once('exit', resolve)
    child.once('error', resolve)
  })
  if (code === 0) return
  const reason = code instanceof Error ? `: ${code.message}` : ''
  throw new Error(`The files are written, but "${name} install" failed${reason}.`)
}
