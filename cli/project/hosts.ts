/** Which host runs a configuration, and what it has. */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, extname, join, relative, resolve } from 'node:path'
import type { Config } from '../../src/core/config/parse.ts'
import { type Lack, parseConfig } from '../../src/core/config/parse.ts'
import { addressReader } from '../../src/core/request/client-address.ts'
import { compileForwarded } from '../../src/core/request/forwarded.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { networks } from '../../src/features/proxies/networks.ts'
import { checkAddress, ofNext, ofNode } from '../../src/hosts/node/lacks.ts'
import { type LimitsConfig, parseLimitsConfig } from '../../src/limits/limits.ts'
import { loadConfig } from './load-config.ts'
import { rootOf } from './root.ts'

/** What runs a configuration. */
export interface Host {
  /** In sentences. */
  name: string
  isGateway: boolean
  /** False for limits by name and key. */
  hasRequests: boolean
  /**
   * Parses a configuration as the host does when it starts.
   * @throws {ConfigError} as the host
   */
  parse: (options: unknown) => Config
}

const host = (
  name: string,
  lacks: readonly Lack[],
  check: (config: Config) => void = () => {},
): Host => ({
  name,
  isGateway: false,
  hasRequests: true,
  parse(options) {
    const config = parseConfig(options as object, defaultFields, lacks)
    check(config)
    return config
  },
})

/** Outside of Cloudflare a configuration must say where the address of a client comes from. */
const knowsAddress = (config: Config) =>
  checkAddress(
    config,
    addressReader(config.clientAddress, undefined, { compileForwarded, networks }),
  )

export const hosts = {
  gateway: { ...host('a gateway', []), isGateway: true },
  app: host('an app', []),
  node: host('an app of Node', [ofNode], knowsAddress),
  next: host('a proxy of Next.js', ofNext, knowsAddress),
} satisfies Record<string, Host>

const limits: Host = {
  ...{ name: 'limits by name and key', isGateway: false, hasRequests: false },
  parse: (options) => parseLimitsConfig(options as LimitsConfig),
}

/** True for a configuration of `limits`, which has no policies. */
const isOfLimits = (options: unknown) => {
  const { limits, policies } = Object(options)
  return Object(limits) === limits && policies === undefined
}

/** A host with its configuration. */
export interface LoadedHost extends Host {
  /** The default export of the configuration, whose file runs once. @throws as `loadConfig` */
  load: () => Promise<unknown>
}

/** A host, and what shows it. */
export interface FoundHost extends LoadedHost {
  key: keyof typeof hosts | 'limits'
  /** True if a gateway runs the configuration too, or none of these functions does. */
  hasGateway: boolean
  /** A sentence for the user. */
  sentence: string
  /** That a file imports the module of `sluice build`, which does not exist. */
  missing: string | undefined
  /** The modules that `sluice build` has written for the configuration. */
  modules: string[]
}

const CODE = /\.[cm]?[jt]sx?$/
const SKIPPED = /^(\..*|node_modules|dist|build|out|coverage)$/
/** Tests use a configuration in the way of their framework, and not as the deployment. */
const TEST = /(^|\/)(tests?|__tests__)\/|\.(test|spec)\.\w+$/
const MAX_FILES = 5_000

/**
 * Finds the host of a configuration: the function that gets it, in a file of the project that imports it, directly or through others.
 * Without such a file it is a gateway. Limits by name and key show it by themselves.
 * @param built the module that `sluice build` writes. Defaults to the one beside the configuration
 */
export async function hostOf(
  config: string,
  built = join(dirname(config), 'sluice.built.ts'),
): Promise<FoundHost> {
  const file = resolve(config)
  const root = rootOf(file)
  const files = new Map<string, string>()
  const modules = new Set([resolve(built)])
  for await (const path of codeIn(root)) {
    const text = await readFile(path, 'utf8').catch(() => '')
    const [, from] = WRITTEN.exec(text) ?? []
    const source = from && resolve(dirname(path), from)
    if (source === file) modules.add(path)
    else if (source && existsSync(source)) modules.delete(path)
    else if (path !== file && !modules.has(path)) files.set(path, plain(text))
    if (files.size >= MAX_FILES) break
  }
  const [user] = importersOf(new Set([resolve(built)]), files)
  const loading = loadConfig(config)
  const found = {
    load: () => loading,
    missing:
      user && !existsSync(built)
        ? `${relative(root, user)} imports ${basename(built)}, which does not exist`
        : undefined,
    modules: [...modules].filter((path) => existsSync(path)),
  }
  if (isOfLimits(await loading.catch(() => undefined)))
    return { ...limits, key: 'limits', hasGateway: false, sentence: OF_LIMITS, ...found }
  const calls: [name: keyof typeof hosts, sentence: string][] = []
  let importers = importersOf(new Set([file, ...modules]), files)
  for (const seen = new Set(importers); importers.length > 0; ) {
    for (const path of importers) {
      const [name, call] = callIn(files.get(path)!, modules) ?? []
      if (name)
        calls.push([name, `Judged as ${hosts[name].name}: ${relative(root, path)} calls ${call}.`])
    }
    importers = importersOf(new Set(importers), files).filter((path) => !seen.has(path))
    for (const path of importers) seen.add(path)
  }
  const [key, sentence] = calls[0] ?? (['gateway', BY_DEFAULT] as const)
  const hasGateway = calls.length === 0 || calls.some(([name]) => name === 'gateway')
  return { ...hosts[key], key, hasGateway, sentence, ...found }
}

/** How a module of `sluice build` begins, with the import of its configuration. */
export const writtenFrom = (from: string) =>
  `// Written by npx sluice build. Do not edit: change ${from}, and run it again.`
const WRITTEN = new RegExp(`^${writtenFrom('(.+)')}$`, 'm')

const BY_DEFAULT =
  'Judged as a gateway: no file imports it and calls rateLimiter, createSluice or rateLimitProxy.'

const OF_LIMITS = 'Judged as limits by name and key: it has limits, and no policies.'

async function* codeIn(root: string, folder = root): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const sorted = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of sorted) {
    const path = join(folder, entry.name)
    const inRoot = relative(root, path) + (entry.isDirectory() ? '/' : '')
    if (SKIPPED.test(entry.name) || TEST.test(inRoot)) continue
    if (entry.isDirectory()) yield* codeIn(root, path)
    else if (entry.isFile() && CODE.test(entry.name)) yield path
  }
}

/** The text without comments and type imports. */
const plain = (text: string) =>
  text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$|^import type [^;]*?from.*$/gm, '')

const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)['"]([^'"]+)['"]/g

const specifiersIn = (text: string) => [...text.matchAll(SPECIFIER)].map(([, name]) => name!)

/** The files that import one of these. An alias such as `@/sluice.config` is known by its last part. */
function importersOf(imported: ReadonlySet<string>, files: ReadonlyMap<string, string>): string[] {
  const names = new Set([...imported].map((path) => bare(path).replace(/\/index$/, '')))
  const lasts = new Set([...names].map((path) => basename(path)))
  return [...files.keys()].filter((file) =>
    specifiersIn(files.get(file)!).some((name) =>
      name.startsWith('.')
        ? names.has(bare(resolve(dirname(file), name)).replace(/\/index$/, ''))
        : /^[@~#$]/.test(name) && lasts.has(bare(basename(name))),
    ),
  )
}

/** A path without the extension of code: an import may leave it out, or name that of the output. */
const bare = (path: string) => (CODE.test(path) ? path.slice(0, -extname(path).length) : path)

/**
 * The host whose function a file calls, with the name of the function.
 * @param modules those of `sluice build`, which export functions of hosts too
 */
function callIn(
  text: string,
  modules: ReadonlySet<string>,
): [keyof typeof hosts, string] | undefined {
  const specifiers = specifiersIn(text)
  const names = [...modules].map((path) => basename(bare(path)).replaceAll('.', '\\.'))
  const module = `[^'"]*/(${names.join('|')})`
  // A name in a text is no call: the file must also import it, or call it as a member.
  const calls = (name: string) =>
    new RegExp(`\\b${name}(?=\\s*[<(]| as )`).test(text) &&
    new RegExp(
      `\\.${name}\\b|\\b${name}\\b[^'"()]*(from|=[^'"()]*\\()\\s*['"](sluice|${module})`,
    ).test(text)
  if (calls('createGateway')) return ['gateway', 'createGateway']
  if (calls('rateLimitProxy')) return ['next', 'rateLimitProxy']
  if (calls('fastifyRateLimiter')) return ['node', 'fastifyRateLimiter']
  if (calls('createSluice')) return ['app', 'createSluice']
  if (!calls('rateLimiter')) return undefined
  const node = specifiers.find((name) => /^sluice\/(built\/)?node$/.test(name))
  if (node) return ['node', `rateLimiter of ${node}`]
  const ours = new RegExp(`^(sluice(/built)?|${module}(\\.\\w+)?)$`)
  const isOurs = specifiers.some((name) => ours.test(name))
  return isOurs ? ['app', 'rateLimiter'] : undefined
}
