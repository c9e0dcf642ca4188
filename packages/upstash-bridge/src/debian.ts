import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Binary, type ServerBinary, versionIfAny } from './binary.ts'

/** A server program in the packages of Debian and Ubuntu. */
export type Packages = {
  /** Name for messages, which add "server": `Redis`. */
  title: string
  /** Its folder in node_modules/.cache. */
  cache: string
  /** The package that contains it. */
  wanted: string
  /** Packages to download if apt cannot list the missing ones. */
  fallback: string[]
  /** Path of the binary, relative to the root of the file system. */
  file: string
  argv0: string
  /** Returns the name and version that the binary prints. Throws when it cannot run. */
  versionOf(binary: Binary): string
}

const run = promisify(execFile)
/** The node_modules folder with this package, or the first one above this file: `redis` is a part of the file in a published package. */
const [nodeModules = tmpdir()] = (createRequire(import.meta.url).resolve.paths('redis') ?? [])
  .filter((folder) => existsSync(folder))
  .sort((one, other) => Number(hasRedis(other)) - Number(hasRedis(one)))
const CACHES = join(nodeModules, '.cache')

function hasRedis(folder: string): boolean {
  return existsSync(join(folder, 'redis'))
}

/**
 * Finds the server in the project's cache. Downloads the packages of Debian or Ubuntu into the cache if needed. Needs no
 * root and does not change the system: apt works in private folders.
 *
 * @returns `undefined` on systems without apt. Rejects with apt's error when the download fails.
 */
export async function cached(
  packages: Packages,
  log: (line: string) => void,
): Promise<ServerBinary | undefined> {
  const cache = join(CACHES, packages.cache)
  const kept = await inspect(packages, cache)
  const version = kept && versionIfAny(packages.versionOf, kept)
  if (kept && version) return { ...kept, source: fromCache(version) }
  if (!(await isInstalled('apt-get')) || !(await isInstalled('dpkg-deb'))) return

  log(
    `${packages.title} is not installed. Downloading the distribution's package into node_modules/.cache …`,
  )
  await sweep(cache)
  // In the folder of the cache, so that one atomic rename installs it, even if other processes do the same.
  const work = await mkdir(dirname(cache), { recursive: true })
    .then(() => mkdtemp(`${cache}-`))
    // node_modules is read-only: use a private folder. Each process then downloads again.
    .catch(() => mkdtemp(join(tmpdir(), `${packages.cache}-bin-`)))
  const unpacked = join(work, 'root')
  try {
    await fetchPackages(packages, work, unpacked)
    const fresh = await inspect(packages, unpacked)
    if (!fresh) throw new Error(`the downloaded packages contain no ${packages.title} server`)
    const source = fromCache(packages.versionOf(fresh))
    if (kept) await rm(cache, { recursive: true, force: true }) // the cached binary no longer runs
    const shared = work.startsWith(cache)
    if (shared) await rename(unpacked, cache).catch(() => {}) // another process has already filled the cache
    const placed = shared ? await inspect(packages, cache) : undefined
    if (!placed) return { ...fresh, source, disposable: work }
    await rm(work, { recursive: true, force: true })
    return { ...placed, source }
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    throw error
  }
}

/** Removes the folders of interrupted downloads: all that are older than 10 minutes. */
async function sweep(cache: string): Promise<void> {
  const parent = dirname(cache)
  for (const name of await readdir(parent).catch((): string[] => [])) {
    if (!name.startsWith(`${basename(cache)}-`)) continue
    const { mtimeMs } = await stat(join(parent, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > 600_000)
      await rm(join(parent, name), { recursive: true, force: true })
  }
}

function fromCache(version: string): string {
  return `${version} from the project's cache (Debian packages)`
}

async function fetchPackages(packages: Packages, work: string, target: string): Promise<void> {
  const config = join(work, 'apt.conf')
  await mkdir(join(work, 'state/lists/partial'), { recursive: true })
  await mkdir(join(work, 'cache/archives/partial'), { recursive: true })
  // The system's hooks would clean the system's cache, and its sandbox user cannot read the private folders.
  await writeFile(
    config,
    `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State ${JSON.stringify(join(work, 'state'))};
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache ${JSON.stringify(join(work, 'cache'))};
APT::Sandbox::User "root";
Acquire::Languages "none";
`,
  )
  const apt = (...args: string[]) =>
    run('apt-get', ['-q', '-c', config, ...args], {
      cwd: work,
      timeout: 120_000,
      env: aptEnvironment(),
    })
  // One broken source makes `update` fail, but the packages may come from another source.
  await apt('update').catch(() => {})
  await apt('download', ...(await missing(packages, apt)))
  for (const name of await readdir(work)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(work, name), target])
  }
}

/** The package and the libraries it needs that are not installed, according to apt. */
async function missing(
  { wanted, fallback }: Packages,
  apt: (...args: string[]) => Promise<{ stdout: string }>,
): Promise<string[]> {
  try {
    const { stdout } = await apt('install', '--simulate', '--no-install-recommends', wanted)
    const names = [...stdout.matchAll(/^Inst (\S+) \(/gm)].map((match) => match[1] ?? '')
    return names.length > 0 ? names : fallback
  } catch {
    return fallback
  }
}

/** The server in an unpacked folder, with the path of its libraries. */
async function inspect(packages: Packages, root: string): Promise<Binary | undefined> {
  const file = join(root, packages.file)
  if (!(await exists(file))) return
  const folders: string[] = []
  for (const base of ['usr/lib', 'lib']) {
    const inside = await readdir(join(root, base)).catch((): string[] => [])
    folders.push(join(root, base), ...inside.map((name) => join(root, base, name)))
  }
  const path = [...folders, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter)
  return { file, argv0: packages.argv0, env: { LD_LIBRARY_PATH: path } }
}

function exists(file: string): Promise<boolean> {
  const yes = () => true
  return access(file).then(yes, () => false)
}

function aptEnvironment() {
  return { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' }
}

async function isInstalled(command: string): Promise<boolean> {
  const yes = () => true
  return run(command, ['--version']).then(yes, () => false)
}
