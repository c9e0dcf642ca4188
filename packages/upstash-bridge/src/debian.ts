import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Binary, type ServerBinary, versionIfAny } from './binary.ts'

/** A server in the packages of Debian and Ubuntu. */
export type Packages = {
  /** For people, followed by "server": `Redis`. */
  title: string
  /** Its folder in node_modules/.cache. */
  cache: string
  /** The package that holds it. */
  wanted: string
  /** Packages to fetch if apt cannot compute which are missing. */
  fallback: string[]
  /** The binary, seen from the root of the file system. */
  file: string
  argv0: string
  /** Its name and version, as the binary itself says. Throws when it does not run. */
  versionOf(binary: Binary): string
}

const run = promisify(execFile)
/** In the node_modules folder that serves this package. */
const CACHES = join(
  createRequire(import.meta.url)
    .resolve.paths('redis')
    ?.find((folder) => existsSync(join(folder, 'redis'))) ?? tmpdir(),
  '.cache',
)

/**
 * The server in the project's cache, filled first from the packages of Debian or Ubuntu. Needs no
 * root and changes nothing of the system: apt works on private folders.
 *
 * @returns `undefined` on systems without apt. Rejects with apt's last line when fetching fails.
 */
export async function cached(
  packages: Packages,
  log: (line: string) => void,
): Promise<ServerBinary | undefined> {
  const cache = join(CACHES, packages.cache)
  const kept = await inspect(packages, cache)
  const version = kept && versionIfAny(packages.versionOf, kept)
  if (kept && version) return { ...kept, source: fromCache(version) }
  if (!(await has('apt-get')) || !(await has('dpkg-deb'))) return

  log(
    `${packages.title}: none installed, fetching the distribution’s package into node_modules/.cache …`,
  )
  await sweep(cache)
  // Beside the cache, so that one atomic rename puts it in place while other processes do the same.
  const work = await mkdir(dirname(cache), { recursive: true })
    .then(() => mkdtemp(`${cache}-`))
    // node_modules is read-only: use a private folder, fetched again by each process
    .catch(() => mkdtemp(join(tmpdir(), `${packages.cache}-bin-`)))
  const unpacked = join(work, 'root')
  try {
    await fetchPackages(packages, work, unpacked)
    const fresh = await inspect(packages, unpacked)
    if (!fresh) throw new Error(`the packages hold no ${packages.title} server`)
    const source = fromCache(packages.versionOf(fresh))
    if (kept) await rm(cache, { recursive: true, force: true }) // it no longer runs here
    const shared = work.startsWith(cache)
    if (shared) await rename(unpacked, cache).catch(() => {}) // another process was faster
    const placed = shared ? await inspect(packages, cache) : undefined
    if (!placed) return { ...fresh, source, disposable: work }
    await rm(work, { recursive: true, force: true })
    return { ...placed, source }
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    throw error
  }
}

/** Removes what a fetch left behind that was cut short; no fetch takes ten minutes. */
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
  // The system's hooks would tidy the system's cache; its sandbox user could not read our folders.
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
    run('apt-get', ['-q', '-c', config, ...args], { cwd: work, timeout: 120_000, env: plain() })
  // Any one broken source makes update fail; the packages may come from the others all the same.
  await apt('update').catch(() => {})
  await apt('download', ...(await missing(packages, apt)))
  for (const name of await readdir(work)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(work, name), target])
  }
}

/** The package and those of its libraries that this system lacks, by apt's own reckoning. */
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

/** The server in an unpacked folder, and where it finds the libraries that came with it. */
async function inspect(packages: Packages, root: string): Promise<Binary | undefined> {
  const file = join(root, packages.file)
  if (!(await there(file))) return
  const folders: string[] = []
  for (const base of ['usr/lib', 'lib']) {
    const inside = await readdir(join(root, base)).catch((): string[] => [])
    folders.push(join(root, base), ...inside.map((name) => join(root, base, name)))
  }
  const path = [...folders, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter)
  return { file, argv0: packages.argv0, env: { LD_LIBRARY_PATH: path } }
}

function there(file: string): Promise<boolean> {
  const yes = () => true
  return access(file).then(yes, () => false)
}

function plain() {
  return { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' }
}

async function has(command: string): Promise<boolean> {
  const yes = () => true
  return run(command, ['--version']).then(yes, () => false)
}
