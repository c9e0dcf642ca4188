import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

/** One layer each; a file imports from its own layer's lines or from those before it. */
const layers = [
  [
    'decision.ts',
    'errors.ts',
    'duration.ts',
    'ip.ts',
    'path.ts',
    'tag.ts',
    'log.ts',
    'lua.d.ts',
    'subject.ts',
    'finding.ts',
    'bindings.ts',
    'calendar.ts',
    'body.ts',
    'shadow.ts',
    'asks.ts',
  ],
  ['client/*'],
  ['client.ts'],
  ['options.ts'],
  ['schema/*'],
  ['policy.ts', 'seen.ts', 'shield.ts'],
  ['live.ts'],
  ['source.ts', 'condition.ts', 'fields.ts', 'fields/*', 'store/store.ts', 'algorithms/*'],
  ['credentials/*', 'response.ts'],
  ['key.ts', 'cost.ts', 'cors.ts', 'proxy.ts', 'early.ts'],
  ['plan.ts'],
  ['descriptor.ts'],
  [
    'store/script.ts',
    'store/local.ts',
    'store/rendezvous.ts',
    'store/lag.ts',
    'store/breaker.ts',
    'store/deadline.ts',
    'store/sharing.ts',
    'store/transport.ts',
    'store/demand.ts',
    'store/shelf.ts',
  ],
  ['store/pack.ts', 'store/shares.ts', 'store/lease.ts'],
  ['store/lease-call.ts'],
  ['store/upstash.ts', 'store/spread.ts', 'store/leases.ts', 'row.ts', 'settle.ts'],
  ['denial-cache.ts', 'without-store.ts'],
  ['limiter.ts'],
  ['parts.ts', 'rules.ts', 'counter-conflicts.ts'],
  ['core.ts'],
  ['gate/*'],
  ['middleware.ts'],
  ['gateway.ts'],
  ['lint.ts', 'lint/*'],
  ['index.ts', 'worker.ts'],
]
const layerOf = (file: string) =>
  layers.findIndex((layer) => layer.includes(file) || layer.includes(`${dirname(file)}/*`))

/** Packages, and the only files that may import them. */
const packages: Record<string, RegExp> = {
  hono: /^(gateway|middleware)(\.ts|\/)/,
  '@upstash/redis': /^store\/upstash\.ts$/,
  valibot: /^(schema\/|policy\.ts$)/,
  jose: /^credentials\/jwt\.ts$/,
  cookie: /^source\.ts$/,
  'ipaddr.js': /^ip\.ts$/,
}

/** What one file of src imports that it must not, a line each. */
export function violations(file: string, text: string): string[] {
  const specifiers = text.matchAll(
    /(?:^import\s+|^(?:import|export)\s[^'"`;=]*?\sfrom\s+|\bimport\()['"]([^'"]+)['"]/gm,
  )
  return [...specifiers].flatMap(([, specifier]) => {
    const wrong = why(file, specifier!)
    return wrong ? [`src/${file}: ${specifier}: ${wrong}`] : []
  })
}

function why(file: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) {
    const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]
    if (!packages[name]) return 'not a dependency of src'
    return packages[name].test(file) ? undefined : `${name} belongs to ${packages[name]}`
  }
  if (specifier.endsWith('.lua')) {
    return file === 'store/script.ts' ? undefined : 'Lua belongs to store/script.ts'
  }
  if (specifier.endsWith('.json')) return undefined // data: it imports nobody
  if (!specifier.endsWith('.ts')) return 'relative imports end in .ts'
  const target = normalize(join(dirname(file), specifier))
  if (target === '../sluice.config.ts')
    return file === 'worker.ts' ? undefined : 'for worker.ts only'
  if (target.startsWith('..')) return 'outside src'
  if (layerOf(file) < 0) return 'not in the layers of dev/imports.ts yet'
  return layerOf(target) < 0 || layerOf(target) > layerOf(file) ? 'imports run one way' : undefined
}

/** Every violation in src. */
export async function checkImports(root: string): Promise<string[]> {
  const files = (await readdir(join(root, 'src'), { recursive: true })).filter((name) =>
    name.endsWith('.ts'),
  )
  const found = await Promise.all(
    files.map(async (file) => violations(file, await readFile(join(root, 'src', file), 'utf8'))),
  )
  return found.flat()
}
