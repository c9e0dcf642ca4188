import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

/** The rooms (folders of src) and packages that a room may import. */
interface Room {
  rooms: readonly string[]
  packages?: readonly string[]
}

const core = (...names: string[]) => names.map((name) => `core/${name}`)

/** The features with fields of their own: owners.ts. */
const owning = ['bans', 'leases', 'live', 'overrides', 'plans', 'shield', 'turns'].map(
  (name) => `features/${name}`,
)

/** The other features of the entry `sluice/features`. */
const others = [
  'bodies',
  'cluster',
  'concurrency',
  'distinct',
  'endpoints',
  'header-sets',
  'jitter',
  'jwt',
  'observe',
  'proxies',
  'quota',
  'refusals',
  'sliding-log',
  'verify',
].map((name) => `features/${name}`)

/** The import rule. Each room comes after the rooms that it imports. */
const rooms: Record<string, Room> = {
  'core/base': { rooms: [] },
  'core/config': { rooms: [...core('base'), ...owning], packages: ['valibot'] },
  // The engine: it loads no schema, no request and no response.
  'core/connection': { rooms: core('base') },
  'core/fallback': { rooms: core('base', 'connection') },
  'core/decide': { rooms: core('base', 'config', 'connection', 'fallback') },
  'core/request': { rooms: core('base', 'config') },
  'core/program': { rooms: core('base', 'config', 'request', 'decide') },
  'core/respond': { rooms: core('base', 'config') },
  core: {
    rooms: [
      ...core('base', 'config', 'request', 'program', 'connection', 'fallback'),
      ...core('decide', 'respond'),
    ],
  },
  // What only some configurations run.
  'core/parts': {
    rooms: ['core', ...core('base', 'config', 'decide', 'fallback', 'program', 'request')],
  },
  'stores/split': { rooms: core('base', 'connection') },
  'stores/cluster': { rooms: [...core('base', 'connection'), 'stores/split'] },
  stores: { rooms: ['core/base', 'stores/cluster'], packages: ['@redis/client'] },
  'stores/durable-objects': {
    rooms: [...core('base', 'config', 'connection'), 'stores/split'],
    packages: ['valibot'],
  },
  api: {
    rooms: [
      'core',
      ...core('base', 'config', 'request', 'program', 'connection', 'decide', 'respond'),
    ],
  },
  // Limits by name and key, without a request.
  limits: {
    rooms: [
      'core',
      ...core('base', 'config', 'connection', 'fallback', 'parts', 'program'),
      ...core('decide', 'respond'),
      'features',
      // Those of the terms that a limit may have.
      ...['bans', 'concurrency', 'leases', 'overrides', 'sliding-log', 'turns'].map(
        (name) => `features/${name}`,
      ),
    ],
    packages: ['valibot'],
  },
  'hosts/app': {
    rooms: [
      'core',
      ...core('base', 'config', 'program', 'request', 'decide'),
      'features',
      'limits',
    ],
    packages: ['hono'],
  },
  'hosts/worker': {
    rooms: [
      'core',
      ...core('base', 'config', 'request', 'decide', 'respond'),
      'api',
      'features',
      'features/endpoints',
      'features/verify',
      'hosts/app',
    ],
    packages: ['hono'],
  },
  'hosts/node': {
    rooms: ['core', ...core('base', 'config', 'request', 'respond'), 'hosts/app', 'limits'],
  },
  adapters: { rooms: ['core/base', 'features/bans', 'features/sliding-log', 'limits'] },
  client: { rooms: ['core/base', 'api', 'features/bans', 'features/overrides', 'limits'] },
  lint: {
    rooms: [...core('base', 'config', 'request', 'program'), 'features'],
    packages: ['valibot'],
  },
  // The lists of features.
  features: {
    rooms: ['core', ...core('config', 'connection', 'parts'), ...owning, ...others],
  },
  'features/bodies': {
    rooms: [
      'core',
      ...core('base', 'config', 'connection', 'request', 'program', 'decide', 'respond'),
    ],
    packages: ['valibot', 'eventsource-parser'],
  },
  'features/graphql': {
    rooms: [...core('base', 'config'), 'features/bodies'],
    packages: ['graphql', 'valibot'],
  },
  'features/jwt': {
    rooms: ['core', ...core('base', 'config', 'program', 'request')],
    packages: ['jose', 'valibot'],
  },
  'features/bans': {
    rooms: ['core', ...core('base', 'config', 'connection', 'program', 'decide', 'respond'), 'api'],
    packages: ['valibot'],
  },
  'features/leases': {
    rooms: ['core', ...core('base', 'config', 'connection')],
    packages: ['valibot'],
  },
  'features/live': {
    rooms: ['core', ...core('base', 'config', 'request', 'connection', 'decide', 'program')],
    packages: ['valibot'],
  },
  'features/shield': { rooms: ['core', ...core('base', 'config')], packages: ['valibot'] },
  'features/concurrency': { rooms: ['core', ...core('config', 'connection', 'respond')] },
  'features/distinct': {
    rooms: ['core', ...core('base', 'config', 'connection', 'program', 'decide')],
  },
  'features/sliding-log': { rooms: ['core', ...core('config', 'connection')] },
  'features/turns': {
    rooms: [
      'core',
      ...core('base', 'config', 'connection', 'decide', 'respond'),
      'stores/durable-objects',
    ],
    packages: ['valibot'],
  },
  'features/overrides': {
    rooms: ['core', ...core('base', 'config', 'program', 'connection', 'decide', 'respond'), 'api'],
    packages: ['valibot'],
  },
  'features/header-sets': {
    rooms: ['core', ...core('base', 'config', 'respond')],
    packages: ['valibot'],
  },
  'features/jitter': { rooms: ['core', ...core('base', 'config')] },
  'features/quota': {
    rooms: [
      'core',
      ...core('base', 'config', 'decide', 'fallback', 'program', 'request', 'respond'),
    ],
    packages: ['valibot'],
  },
  'features/plans': {
    rooms: ['core', ...core('base', 'config', 'program')],
    packages: ['valibot'],
  },
  'features/proxies': { rooms: ['core', ...core('config')] },
  'features/refusals': {
    rooms: ['core', ...core('base', 'config', 'respond')],
    packages: ['valibot'],
  },
  'features/observe': {
    rooms: ['core', ...core('base', 'config', 'connection', 'program', 'decide', 'request')],
    packages: ['valibot'],
  },
  'features/cluster': { rooms: ['core', 'stores/cluster'] },
  'features/endpoints': {
    rooms: [
      'core',
      ...core('base', 'config', 'respond'),
      'api',
      // Each host has these features, so the decision API always has their endpoints.
      'features/bans',
      'features/overrides',
    ],
  },
  'features/verify': {
    rooms: ['core', ...core('base', 'config', 'request', 'program', 'decide', 'respond')],
  },
  outbound: {
    rooms: [
      'core',
      ...core('base', 'config', 'connection', 'request', 'program', 'decide'),
      'features',
      'hosts/app',
      'features/concurrency',
      'features/plans',
      'features/sliding-log',
      // Calls wait in lines, a cooldown is a ban, and a lower limit of the other side is one of an operator.
      'features/turns',
      'features/bans',
      'features/overrides',
    ],
    packages: ['valibot', 'structured-headers'],
  },
  testing: {
    rooms: core('base'),
    packages: [
      'miniflare',
      'sluice-upstash-bridge',
      'wrangler',
      'node:async_hooks',
      'node:child_process',
      'node:diagnostics_channel',
      'node:fs',
      'node:http',
      'node:module',
      'node:net',
      'node:os',
      'node:path',
      'node:util',
    ],
  },
  'index.ts': { rooms: [...core('base', 'config'), 'hosts/app', 'hosts/worker', 'lint'] },
  built: {
    rooms: [
      'core',
      ...core('base', 'config', 'connection', 'decide'),
      'api',
      ...['', '/endpoints', '/header-sets', '/observe', '/verify'].map((room) => `features${room}`),
      'hosts/app',
      'hosts/node',
      'hosts/worker',
      'limits',
    ],
  },
  'rpc.ts': {
    rooms: ['core', ...core('base', 'decide', 'program'), 'hosts/worker', 'limits'],
    packages: ['cloudflare:workers'],
  },
  'worker.ts': { rooms: [] },
}

/** Rooms that may import only types of other rooms. */
const typesOnly: Record<string, readonly string[]> = {
  client: ['api', 'features/bans', 'features/overrides'],
  // The types of the fields that a feature adds: owners.ts.
  'core/config': owning,
  'core/decide': core('config'),
}

const IMPORT =
  /(?:^import\s+(type\s)?|^(?:import|export)\s(type\s)?[^'"`;=]*?\sfrom\s+|\bimport\()['"]([^'"]+)['"]/gm

/** The imports of a file: the specifier, and if it imports only types. */
function importsOf(text: string) {
  return [...text.matchAll(IMPORT)].map(([, bare, type, specifier]) => ({
    specifier: specifier!,
    isType: Boolean(bare ?? type),
  }))
}

/** The room of a file of src: its folder of `core`, `features`, `hosts` or `stores`, otherwise its first folder. */
export const roomOf = (file: string) =>
  /^(?:(?:core|features|hosts|stores)\/[^/]+(?=\/)|[^/]+)/.exec(file)![0]
const packageOf = (specifier: string) => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]

/** The imports of one file of src that break the rule, one line for each. */
export function violations(file: string, text: string): string[] {
  return importsOf(text).flatMap(({ specifier, isType }) => {
    const reason = reasonAgainst(file, specifier, isType)
    return reason ? [`src/${file}: ${specifier}: ${reason}`] : []
  })
}

function reasonAgainst(file: string, specifier: string, isType: boolean): string | undefined {
  const own = roomOf(file)
  const room = rooms[own]
  if (!room) return 'this room is not listed in tools/imports.ts'
  if (!specifier.startsWith('.')) {
    const name = packageOf(specifier)
    return room.packages?.includes(name) ? undefined : `${own} may not import the package ${name}`
  }
  const target = normalize(join(dirname(file), specifier))
  if (target === '../sluice.built.ts')
    return own === 'worker.ts' ? undefined : 'only worker.ts may import sluice.built.ts'
  if (target.startsWith('..')) return 'files of src may not import files outside src'
  if (!/\.(ts|json)$/.test(specifier)) return 'write the extension .ts in a relative import'
  const other = roomOf(target)
  if (other === own) return undefined
  if (!room.rooms.includes(other)) return `${own} may not import ${other}`
  return typesOnly[own]?.includes(other) && !isType
    ? `${own} may import only types of ${other}`
    : undefined
}

/** The fields of package.json that the check reads. */
export interface Manifest {
  name: string
  exports: string | Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/** The imports of one file of a package from outside its folder and its dependencies, one line for each. */
export function packageViolations(file: string, text: string, manifest: Manifest): string[] {
  const [folder, part] = /^packages\/[^/]+\/(?=([^/]+))/.exec(file)!
  const { dependencies, devDependencies } = manifest
  const allowed = { ...dependencies, ...(part === 'src' ? {} : devDependencies) }
  return importsOf(text).flatMap(({ specifier }) => {
    const isAllowed = specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier)).startsWith(folder)
      : specifier.startsWith('node:') || packageOf(specifier) in allowed
    const reason =
      'a package may import only files of its folder, its dependencies and node: modules'
    return isAllowed ? [] : [`${file}: ${specifier}: ${reason}`]
  })
}

const folders = ['src', 'cli', 'tools', 'site', 'packages', 'test', 'examples']

/** The imports of one file of the command line from the benchmarks, which the package does not contain. */
export const cliViolations = (file: string, text: string): string[] =>
  importsOf(text)
    .filter(({ specifier }) => /^(\.\.\/)+bench\//.test(specifier))
    .map(({ specifier }) => `${file}: ${specifier}: the command line may not import bench`)

/** All violations in src, cli and packages, and all import cycles in the repository. */
export async function checkImports(root: string): Promise<string[]> {
  const files = (await Promise.all(folders.map((folder) => sources(root, folder)))).flat()
  const texts = new Map<string, string>()
  for (const file of files) texts.set(file, await readFile(join(root, file), 'utf8'))
  const found = files
    .filter((file) => file.startsWith('src/'))
    .flatMap((file) => violations(file.slice('src/'.length), texts.get(file)!))
  for (const file of files.filter((one) => one.startsWith('cli/'))) {
    found.push(...cliViolations(file, texts.get(file)!))
  }
  const entries = new Map<string, string>()
  for (const folder of [...(await packageFolders(root)), 'tools/bench']) {
    const manifest: Manifest = JSON.parse(
      await readFile(join(root, folder, 'package.json'), 'utf8'),
    )
    const { name, exports } = manifest
    entries.set(name, join(folder, typeof exports === 'string' ? exports : exports['.']!))
    if (folder === 'tools/bench') continue
    for (const file of files.filter((one) => one.startsWith(`${folder}/`))) {
      found.push(...packageViolations(file, texts.get(file)!, manifest))
    }
  }
  return [...found, ...cycles(texts, entries)]
}

const packageFolders = async (root: string) =>
  (await readdir(join(root, 'packages'))).map((name) => join('packages', name))

async function sources(root: string, folder: string): Promise<string[]> {
  const names = await readdir(join(root, folder), { recursive: true })
  return names
    .filter((name) => name.endsWith('.ts') && !/(^|\/)node_modules\//.test(name))
    .map((name) => join(folder, name))
}

/**
 * The import cycles between files, each listed once.
 * @param entries the entry files of workspaces, by package name
 */
export function cycles(
  texts: ReadonlyMap<string, string>,
  entries: ReadonlyMap<string, string> = new Map(),
): string[] {
  const found: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const path: string[] = []
  const visit = (file: string) => {
    if (state.get(file) === 'done' || !texts.has(file)) return
    if (state.get(file) === 'open') {
      found.push(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`)
      return
    }
    state.set(file, 'open')
    path.push(file)
    for (const { specifier } of importsOf(texts.get(file)!)) {
      const target = specifier.startsWith('.')
        ? join(dirname(file), specifier)
        : entries.get(specifier)
      if (target) visit(normalize(target))
    }
    path.pop()
    state.set(file, 'done')
  }
  for (const file of texts.keys()) visit(file)
  return found
}
