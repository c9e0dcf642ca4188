import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Has } from './object-lines.ts'
import { wranglerOf } from './tools.ts'

/** The bindings in the configuration of wrangler. */
export interface WranglerBindings {
  vars: Record<string, unknown>
  kv: { binding: string; id?: string }[]
  ratelimits: { name: string; simple: { limit: number; period: 10 | 60 } }[]
}

/** The configuration of wrangler, as far as `sluice dev` uses it. */
export interface WranglerConfig extends WranglerBindings {
  /** The absolute path of the Worker. */
  main: string
  compatibilityDate: string | undefined
  compatibilityFlags: string[]
  rules: { type: string; globs: string[] }[]
  define: Record<string, string>
  alias: Record<string, string>
  /** The bindings of Durable Objects. Those with a `script_name` belong to another Worker. */
  objects: { name: string; class_name: string; script_name?: string | undefined }[]
  /** The storage of the classes of Durable Objects that a deployment creates, by their names. */
  classes: Map<string, 'sqlite' | 'legacy-kv'>
  has: Has
  /** True if there are bindings that `moreBindings` returns. */
  hasMore: boolean
  /** The fields with bindings that `sluice dev` does not provide. */
  unsupported: string[]
}

/** The files that wrangler reads, in its order. */
export const WRANGLER_FILES = ['wrangler.json', 'wrangler.jsonc', 'wrangler.toml']

/** The path of the configuration that wrangler reads in this folder. Without one, of the file that init writes. */
export function wranglerFile(project: string): string {
  const files = WRANGLER_FILES.map((name) => join(project, name))
  return files.find((file) => existsSync(file)) ?? join(project, 'wrangler.jsonc')
}

/** The configuration that the command line `cf` reads, and wrangler does not. */
export const CF_CONFIG = 'cloudflare.config.ts'

/** What a project of `cf` needs. */
export const unreadByCf = (binding: string, className: string) =>
  `Sluice does not read ${CF_CONFIG}. Its Worker needs the Durable Object ${className}, with the storage "sqlite" in exports, as ${binding} in env.`

/** The fields with bindings of products that Miniflare runs on this machine: see bindings.ts. */
const PROVIDED = [
  'd1_databases',
  'r2_buckets',
  'hyperdrive',
  'analytics_engine_datasets',
  'version_metadata',
  'assets',
]

/** The fields with bindings that `sluice dev` does not provide: remote products and other Workers. */
const UNSUPPORTED = [
  'services',
  'vectorize',
  'workflows',
  'dispatch_namespaces',
  'mtls_certificates',
  'send_email',
  'ai',
  'browser',
  'images',
]

const isUsed = (value: unknown) => Object.values(Object(value)).some((one) => one !== undefined)

/**
 * Reads the bindings with wrangler. Returns none if the file does not exist.
 * @throws Error with the line and column of a syntax error
 */
export async function readBindings(file: string): Promise<WranglerBindings> {
  const text = await readFile(file, 'utf8').catch(() => '')
  // Importing wrangler takes a second, so import it only if the file has bindings.
  if (!/^[^#\n]*\b(vars|kv_namespaces|ratelimits)\b/m.test(text)) {
    return { vars: {}, kv: [], ratelimits: [] }
  }
  return bindingsOf(await read(file))
}

/** The patterns of the Worker's routes. Returns none if the file cannot be read. */
export async function routesIn(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (!/^[^#\n]*\broutes?\b/m.test(text)) return []
  try {
    const { routes = [], route } = await read(file)
    return [...routes, ...(route ? [route] : [])].map((one) =>
      typeof one === 'string' ? one : one.pattern,
    )
  } catch {
    return [] // the routes only explain a problem
  }
}

/** Why there is nothing to read. */
export const noFile = (project: string) =>
  existsSync(join(project, CF_CONFIG))
    ? `${CF_CONFIG}: this command reads ${WRANGLER_FILES.join(', ')}, and not the configuration of cf. To run the Worker: npx cf dev`
    : 'wrangler.jsonc: the file does not exist. To write one: npx sluice init'

/**
 * Reads the configuration of a project with wrangler.
 * @throws Error with the line and column of a syntax error
 */
export async function readWrangler(project: string): Promise<WranglerConfig> {
  const file = wranglerFile(project)
  if (!existsSync(file)) throw new Error(noFile(project))
  const config = await read(file)
  if (!config.main) {
    throw new Error(
      `${basename(file)}: main: expected the path of the Worker, such as "src/worker.ts"`,
    )
  }
  const fields = config as unknown as Record<string, unknown>
  const { durable_objects: objects, queues } = config
  return {
    ...bindingsOf(config),
    main: config.main,
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: config.compatibility_flags,
    rules: config.rules,
    define: config.define,
    alias: config.alias ?? {},
    objects: objects.bindings,
    classes: classesOf(config),
    has: {
      bindings: objects.bindings.length > 0,
      exports: isUsed(config.exports),
      migrations: config.migrations.length > 0,
    },
    hasMore:
      PROVIDED.some((name) => isUsed(fields[name])) ||
      objects.bindings.length > 0 ||
      Boolean(queues.producers?.length || queues.consumers?.length),
    unsupported: UNSUPPORTED.filter((name) => isUsed(fields[name])),
  }
}

interface ClassExport {
  type: string
  /** Absent if the class is deleted, or goes elsewhere. */
  storage?: 'sqlite' | 'legacy-kv'
}

/** Follows the migrations in their order. `exports` may replace them. */
function classesOf({ migrations, exports }: Read): WranglerConfig['classes'] {
  const classes: WranglerConfig['classes'] = new Map()
  for (const one of migrations) {
    for (const name of one.new_classes ?? []) classes.set(name, 'legacy-kv')
    for (const name of one.new_sqlite_classes ?? []) classes.set(name, 'sqlite')
    for (const { to } of one.transferred_classes ?? []) classes.set(to, 'sqlite')
    for (const { from, to } of one.renamed_classes ?? []) {
      classes.set(to, classes.get(from) ?? 'sqlite')
      classes.delete(from)
    }
    for (const name of one.deleted_classes ?? []) classes.delete(name)
  }
  for (const [name, one] of Object.entries((exports ?? {}) as Record<string, ClassExport>)) {
    if (one.type === 'durable-object' && one.storage) classes.set(name, one.storage)
  }
  return classes
}

type Read = Awaited<ReturnType<typeof read>>

async function read(file: string) {
  const { unstable_readConfig: readConfig } = await wranglerOf(dirname(file))
  return placed(basename(file), () => readConfig({ config: file }, { hideWarnings: true }))
}

const bindingsOf = ({ vars, kv_namespaces, ratelimits }: Read): WranglerBindings => ({
  vars,
  kv: kv_namespaces as WranglerBindings['kv'],
  ratelimits: ratelimits as WranglerBindings['ratelimits'],
})

/** Adds the file, line and column to the errors of wrangler, in one line. */
function placed<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { message, location } = error as Error & { location?: { line: number; column: number } }
    const place = location ? `:${location.line}:${location.column + 1}` : ''
    const [first, ...problems] = message.trim().split(/\n\s*- /)
    const text = (problems[0] ?? first)!.split('\n')[0]
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
    throw new Error(`${file}${place}: ${text}${more}`, { cause: error })
  }
}
