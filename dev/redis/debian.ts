import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type ServerBinary, versionIfAny, versionOf } from './binary.ts'

type Binary = Omit<ServerBinary, 'source'>

const run = promisify(execFile)
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/sluice-redis', import.meta.url))

/** What redis-tools 7.0 of Debian 12 needs beyond a minimal system: the fall-back of `missing()`. */
const PACKAGES = ['redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1']

/**
 * The Redis in the project's cache, filled first (about 1.3 MB, 3 s) from the packages of Debian or
 * Ubuntu. Needs no root and changes nothing of the system: apt works on folders of our own.
 *
 * @returns `undefined` on systems without apt. Rejects with apt's last line when fetching fails.
 */
export async function cachedServer(log: (line: string) => void): Promise<ServerBinary | undefined> {
  const kept = await inspect(CACHE)
  const version = kept && versionIfAny(kept)
  if (kept && version) return { ...kept, source: fromCache(version) }
  if (!(await has('apt-get')) || !(await has('dpkg-deb'))) return

  log('Redis: none installed, fetching the distribution’s package into node_modules/.cache …')
  await sweep()
  // Beside the cache, so that one rename puts it in place, whoever else is doing the same.
  const work = await mkdir(dirname(CACHE), { recursive: true })
    .then(() => mkdtemp(`${CACHE}-`))
    // node_modules of somebody else: a private folder, fetched anew by each process
    .catch(() => mkdtemp(join(tmpdir(), 'sluice-redis-bin-')))
  const unpacked = join(work, 'root')
  try {
    await fetchPackages(work, unpacked)
    const fresh = await inspect(unpacked)
    if (!fresh) throw new Error('the packages hold no Redis server')
    const source = fromCache(versionOf(fresh))
    if (kept) await rm(CACHE, { recursive: true, force: true }) // it no longer runs here
    const shared = work.startsWith(CACHE)
    if (shared) await rename(unpacked, CACHE).catch(() => {}) // else somebody else was faster
    const placed = shared ? await inspect(CACHE) : undefined
    if (!placed) return { ...fresh, source, disposable: work }
    await rm(work, { recursive: true, force: true })
    return { ...placed, source }
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    throw error
  }
}

/** Removes what a fetch left behind that was cut short; no fetch takes ten minutes. */
async function sweep(): Promise<void> {
  const parent = dirname(CACHE)
  for (const name of await readdir(parent).catch((): string[] => [])) {
    if (!name.startsWith(`${basename(CACHE)}-`)) continue
    const { mtimeMs } = await stat(join(parent, name)).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > 600_000)
      await rm(join(parent, name), { recursive: true, force: true })
  }
}

function fromCache(version: string): string {
  return `${version} from the project's cache (Debian packages)`
}

async function fetchPackages(work: string, target: string): Promise<void> {
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
  await apt('download', ...(await missing(apt)))
  for (const name of await readdir(work)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(work, name), target])
  }
}

/** redis-tools and those of its libraries that this system lacks, by apt's own reckoning. */
async function missing(apt: (...args: string[]) => Promise<{ stdout: string }>) {
  try {
    const { stdout } = await apt('install', '--simulate', '--no-install-recommends', 'redis-tools')
    const names = [...stdout.matchAll(/^Inst (\S+) \(/gm)].map((match) => match[1] ?? '')
    return names.length > 0 ? names : PACKAGES
  } catch {
    return PACKAGES
  }
}

/** The server in an unpacked folder: redis-check-rdb is the same binary and goes by its name. */
async function inspect(root: string): Promise<Binary | undefined> {
  const bin = await readdir(join(root, 'usr/bin')).catch((): string[] => [])
  if (!bin.includes('redis-check-rdb')) return
  const folders: string[] = []
  for (const base of ['usr/lib', 'lib']) {
    const inside = await readdir(join(root, base)).catch((): string[] => [])
    folders.push(join(root, base), ...inside.map((name) => join(root, base, name)))
  }
  const path = [...folders, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter)
  return {
    file: join(root, 'usr/bin/redis-check-rdb'),
    argv0: 'redis-server',
    env: { LD_LIBRARY_PATH: path },
  }
}

function plain() {
  return { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' }
}

async function has(command: string): Promise<boolean> {
  const yes = () => true
  return run(command, ['--version']).then(yes, () => false)
}
