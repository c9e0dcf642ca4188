/** The package manager of a project. In a workspace, the root of the workspace says which one it is. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A package manager with its commands. */
export interface PackageManager {
  name: string
  /** Runs a script of package.json. */
  run: string
  /** Runs a command of an installed package. */
  exec: string
  /** Adds a package for development. */
  add: string
  /** The files that only this package manager writes or reads. */
  files: string[]
}

const NPM: PackageManager = {
  name: 'npm',
  run: 'npm run',
  exec: 'npx',
  add: 'npm install --save-dev',
  files: ['package-lock.json', 'npm-shrinkwrap.json'],
}

const MANAGERS: PackageManager[] = [
  {
    name: 'pnpm',
    run: 'pnpm run',
    exec: 'pnpm exec',
    add: 'pnpm add --save-dev',
    files: ['pnpm-lock.yaml', 'pnpm-workspace.yaml'],
  },
  {
    name: 'yarn',
    run: 'yarn run',
    exec: 'yarn',
    add: 'yarn add --dev',
    files: ['yarn.lock', '.yarnrc.yml'],
  },
  {
    name: 'bun',
    run: 'bun run',
    exec: 'bunx',
    add: 'bun add --dev',
    files: ['bun.lock', 'bun.lockb'],
  },
  NPM,
]

/**
 * The package manager of a project: the one whose files are beside package.json, or that package.json names. The nearest folder decides,
 * from the project up to the root of its workspace. Without either, the one that runs this command, and then npm.
 * @param agent what package managers tell the commands that they run, such as `pnpm/10.4.0 npm/? node/v24.1.0`
 */
export function packageManagerOf(
  folder: string,
  agent = process.env.npm_config_user_agent ?? '',
): PackageManager {
  const runner = MANAGERS.filter(({ name }) => agent.startsWith(`${name}/`))
  for (let at = folder; ; at = dirname(at)) {
    const manifest = manifestIn(at)
    const isRoot = 'workspaces' in manifest || existsSync(join(at, 'pnpm-workspace.yaml'))
    const named = MANAGERS.filter(({ name }) => name === nameIn(manifest))
    // A lockfile above the project is about the project only in a workspace.
    const mayHave = at === folder || isRoot
    const locked = MANAGERS.filter(
      ({ files }) => mayHave && files.some((file) => existsSync(join(at, file))),
    )
    // A lockfile was written, a field only says what should be. The others decide between two lockfiles.
    const found = locked.length > 0 ? locked : named
    const [first] = found
    if (first) return [...named, ...runner].find((one) => found.includes(one)) ?? first
    if (isRoot || at === dirname(at)) return runner[0] ?? NPM
  }
}

interface Manifest {
  packageManager?: unknown
  devEngines?: { packageManager?: unknown }
}

function manifestIn(folder: string): Manifest {
  try {
    return Object(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')))
  } catch {
    return {}
  }
}

/** The package manager that a package.json names, as Corepack (`packageManager`) or npm (`devEngines`) reads it. */
function nameIn({ packageManager, devEngines }: Manifest): unknown {
  if (typeof packageManager === 'string') return packageManager.split('@')[0]
  const [engine] = [devEngines?.packageManager].flat()
  return Object(engine).name
}

/** Installs the packages of package.json. @throws Error if this fails */
export async function install(folder: string, { name }: PackageManager): Promise<void> {
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
