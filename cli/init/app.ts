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
}

/** The frameworks by the packages that name them. An app of Next.js may have the others, too. */
const FRAMEWORKS: [name: string, lines: (config: string) => string[]][] = [
  [
    'express',
    (config) => [
      "import { rateLimiter } from 'sluice/node'",
      `import config from '${config}'`,
      '',
      'app.use(rateLimiter(config)) // before your routes',
    ],
  ],
  [
    'fastify',
    (config) => [
      "import { fastifyRateLimiter } from 'sluice/node'",
      `import config from '${config}'`,
      '',
      'await app.register(fastifyRateLimiter(config)) // before your routes',
    ],
  ],
  [
    '@hono/node-server',
    (config) => [
      "import { rateLimiter } from 'sluice'",
      `import config from '${config}'`,
      '',
      'app.use(rateLimiter(config)) // before your routes',
    ],
  ],
]

const PROXY = `import { rateLimitProxy } from 'sluice/next'
import config from './sluice.config'

export const proxy = rateLimitProxy(config)
`
const PROXIES = ['proxy', 'middleware'].flatMap((name) => [`${name}.ts`, `${name}.js`])

/** Finds the framework of an app by its packages; `undefined` without one. */
export function existingApp(folder: string, has: (name: string) => boolean): App | undefined {
  if (has('next')) return nextApp(folder)
  const found = FRAMEWORKS.find(([name]) => has(name))
  if (!found) return undefined
  // A compiler resolves the name of the output; Node itself runs the source.
  const config = existsSync(join(folder, 'tsconfig.json')) ? 'js' : 'ts'
  return {
    files: { 'sluice.config.ts': nodeConfig("'socket'") },
    missing: `To apply the policies, add to your app:\n\n${indented(found[1](`./sluice.config.${config}`).join('\n'))}`,
  }
}

function nextApp(folder: string): App {
  // Next.js reads the file beside the folder app or pages only.
  const isInSource = ['app', 'pages'].some((name) => existsSync(join(folder, 'src', name)))
  const source = isInSource ? 'src/' : ''
  const own = PROXIES.map((name) => source + name).find((name) => existsSync(join(folder, name)))
  const proxy = source ? PROXY.replace('./sluice', '../sluice') : PROXY
  const files: Files = { 'sluice.config.ts': nodeConfig('{ forwardedFor: { trustedProxies: 1 } }') }
  if (!own) files[`${source}proxy.ts`] = proxy
  return {
    files,
    missing: own
      ? `To apply the policies, wrap the function of ${own}: npx sluice docs nextjs#keep-your-own-proxy-function`
      : '',
  }
}
