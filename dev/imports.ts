import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

/** What a room (a folder of src) may import: other rooms, and packages. Nothing else. */
interface Room {
  rooms: readonly string[]
  packages?: readonly string[]
}

/** The import rule: one line for each room, in an order in which every room comes after those that it imports. */
const rooms: Record<string, Room> = {
  base: { rooms: [], packages: ['ipaddr.js'] },
  config: { rooms: ['base'], packages: ['valibot'] },
  request: { rooms: ['base', 'config'], packages: ['cookie'] },
  credentials: { rooms: ['base', 'config', 'request'], packages: ['jose'] },
  match: { rooms: ['base', 'config', 'request', 'credentials'] },
  store: { rooms: ['base'], packages: ['@upstash/redis'] },
  limiter: { rooms: ['base', 'config', 'request', 'match', 'store'] },
  http: { rooms: ['base', 'config'] },
  api: {
    rooms: ['base', 'config', 'request', 'credentials', 'match', 'limiter', 'http'],
    packages: ['valibot'],
  },
  gateway: {
    rooms: ['base', 'config', 'request', 'match', 'limiter', 'http', 'api'],
    packages: ['hono'],
  },
  client: { rooms: ['base', 'api'] },
  lint: { rooms: ['base', 'config', 'match'] },
  'index.ts': { rooms: ['base', 'config', 'gateway', 'lint'] },
  'worker.ts': { rooms: ['gateway'] },
}

/** Rooms of which another room may import types only. */
const typesOnly: Record<string, string> = { client: 'api' }

const IMPORT =
  /(?:^import\s+(type\s)?|^(?:import|export)\s(type\s)?[^'"`;=]*?\sfrom\s+|\bimport\()['"]([^'"]+)['"]/gm

/** The imports of a file: the specifier, and whether only types are imported. */
function importsOf(text: string) {
  return [...text.matchAll(IMPORT)].map(([, bare, type, specifier]) => ({
    specifier: specifier!,
    isType: Boolean(bare ?? type),
  }))
}

const roomOf = (file: string) => file.split('/')[0]!

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
  if (!room) return 'dev/imports.ts does not list this room'
  if (!specifier.startsWith('.')) {
    const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]
    return room.packages?.includes(name) ? undefined : `${own} may not import the package ${name}`
  }
  const target = normalize(join(dirname(file), specifier))
  if (specifier.endsWith('.lua')) {
    return file === 'store/upstash/script.ts'
      ? undefined
      : 'only store/upstash/script.ts imports Lua'
  }
  if (target === '../sluice.config.ts')
    return own === 'worker.ts' ? undefined : 'for worker.ts only'
  if (target.startsWith('..')) return 'outside src'
  if (!/\.(ts|json)$/.test(specifier)) return 'a relative import names its file with .ts'
  const other = roomOf(target)
  if (other === own) return undefined
  if (!room.rooms.includes(other)) return `${own} may not import ${other}`
  return typesOnly[own] === other && !isType ? `${own} imports types of ${other} only` : undefined
}

const folders = ['src', 'dev', 'packages', 'bench', 'test', 'examples']

/** Every violation in src, and every import cycle in the repository. */
export async function checkImports(root: string): Promise<string[]> {
  const files = (await Promise.all(folders.map((folder) => sources(root, folder)))).flat()
  const texts = new Map<string, string>()
  for (const file of files) texts.set(file, await readFile(join(root, file), 'utf8'))
  const found = files
    .filter((file) => file.startsWith('src/'))
    .flatMap((file) => violations(file.slice('src/'.length), texts.get(file)!))
  return [...found, ...cycles(texts)]
}

async function sources(root: string, folder: string): Promise<string[]> {
  const names = await readdir(join(root, folder), { recursive: true })
  return names
    .filter((name) => name.endsWith('.ts') && !/(^|\/)node_modules\//.test(name))
    .map((name) => join(folder, name))
}

/** The import cycles between files, each named once. */
export function cycles(texts: ReadonlyMap<string, string>): string[] {
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
      if (specifier.startsWith('.')) visit(normalize(join(dirname(file), specifier)))
    }
    path.pop()
    state.set(file, 'done')
  }
  for (const file of texts.keys()) visit(file)
  return found
}
