/** Apps on Node: what init writes and prints for a folder whose package.json names a framework, and that has no Worker. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { indented } from '../project/object-lines.ts'
import { nodeConfig } from './templates.ts'
import type { Files } from './write.ts'

/** An app that uses a framework of Node. */
export interface App {
  files: Files
  /** What the user must add to the app. */
  missing: string
  /** False for Next.js, whose proxy takes no connection to a Redis. */
  readsRedisUrl: boolean
}

/** A bundler, in the script `build`. */
const BUNDLER = /\b(next|vite|esbuild|rolldown|rollup|tsup|tsdown|webpack|rspack|parcel|bun build) /

/** True if a script bundles an app, which can then import what `sluice build` writes. */
export const bundles = (script = ''): boolean => BUNDLER.test(`${script} `)

/** The lines that apply the policies, by the packages that name a framework. An app of Next.js may have the others, too. */
const FRAMEWORKS: [name: string, entry: string, called: string, use: string][] = [
  ['express', 'sluice/node', 'rateLimiter', 'app.use(rateLimiter(config))'],
  [
    'fastify',
    'sluice/node',
    'fastifyRateLimiter',
    'await app.register(fastifyRateLimiter(config))',
  ],
  ['@hono/node-server', 'sluice', 'rateLimiter', 'app.use(rateLimiter(config))'],
]

const importsOf = (called: string, entry: string, isBuilt: boolean, extension: string) =>
  isBuilt
    ? `import { ${called} } from '${entry.replace('sluice', 'sluice/built')}'\nimport config from './sluice.built${extension === '.ts' ? extension : ''}'`
    : `import { ${called} } from '${entry}'\nimport config from './sluice.config${extension}'`

const PROXIES = ['proxy', 'middleware'].flatMap((name) => [`${name}.ts`, `${name}.js`])

/**
 * Finds the framework of an app by its packages; `undefined` without one.
 * @param isBundled true if a bundler makes what is deployed
 */
export function existingApp(
  folder: string,
  has: (name: string) => boolean,
  isBundled: boolean,
): App | undefined {
  if (has('next')) return nextApp(folder, isBundled)
  const [, entry, called, use] = FRAMEWORKS.find(([name]) => has(name)) ?? []
  if (!entry) return undefined
  // A compiler resolves the name of the output; Node itself runs the source, also if a bundler makes only its pages.
  const extension = existsSync(join(folder, 'tsconfig.json')) ? '.js' : '.ts'
  const lines = `${importsOf(called!, entry, isBundled, extension)}\n\n${use} // before your routes`
  return {
    files: { 'sluice.config.ts': nodeConfig("'socket'") },
    missing: `To apply the policies, add to your app:\n\n${indented(lines)}`,
    readsRedisUrl: true,
  }
}

function nextApp(folder: string, isBundled: boolean): App {
  // Next.js reads the file beside the folder app or pages only.
  const isInSource = ['app', 'pages'].some((name) => existsSync(join(folder, 'src', name)))
  const source = isInSource ? 'src/' : ''
  const own = PROXIES.map((name) => source + name).find((name) => existsSync(join(folder, name)))
  const imports = importsOf('rateLimitProxy', 'sluice/next', isBundled, '')
  const proxy = `${source ? imports.replace('./sluice', '../sluice') : imports}

export const proxy = rateLimitProxy(config)
`
  const files: Files = { 'sluice.config.ts': nodeConfig('{ forwardedFor: { trustedProxies: 1 } }') }
  if (!own) files[`${source}proxy.ts`] = proxy
  return {
    files,
    missing: own
      ? `To apply the policies, wrap the function of ${own}: npx sluice docs nextjs#keep-your-own-proxy-function`
      : '',
    readsRedisUrl: false,
  }
}
