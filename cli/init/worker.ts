import { existsSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { wranglerFile } from '../project/wrangler-config.ts'
import { BINDING, bindingIn, CLASS, indented, migrationIn, WORKER } from './templates.ts'
import { textOf } from './write.ts'

/** The Worker of a folder that has a configuration of wrangler. init changes neither of them. */
export interface Existing {
  /** The configuration of wrangler. */
  config: string
  /** The path of the user's own Worker; `undefined` if init writes the Worker. */
  main: string | undefined
  /** True if that Worker uses `createGateway`. */
  isGateway: boolean
  /** True if that Worker uses Sluice without a `sluice.config`: it has policies of its own. */
  hasPolicies: boolean
  /** What the user must add, with lines of code; `undefined` if nothing is missing. */
  missing: string | undefined
}

/** Finds the Worker of a folder; `undefined` without a configuration of wrangler. */
export async function existingWorker(
  folder: string,
  inObjects: boolean,
): Promise<Existing | undefined> {
  const path = wranglerFile(folder)
  if (!existsSync(path)) return undefined
  const config = basename(path)
  const text = (await textOf(path)) ?? ''
  const objects = inObjects && !text.includes('SluiceSubject') ? objectLines(config) : ''
  const main = mainOf(text)
  const code = main === undefined ? undefined : await textOf(join(folder, main))
  if (main === undefined || code === undefined) {
    const line = config.endsWith('.toml') ? `main = "${WORKER}"` : `"main": "${WORKER}"`
    const missing = main === WORKER ? '' : `To run ${WORKER}, write into ${config}:\n\n  ${line}`
    return {
      config,
      main: undefined,
      isGateway: true,
      hasPolicies: false,
      missing: all(missing, objects),
    }
  }
  const isOwn = !/['"]sluice['"]/.test(code)
  const isGateway = !isOwn && /\bcreateGateway\b/.test(code)
  const isWritten = main === WORKER && isGateway
  const exported =
    inObjects && !isWritten && !code.includes('SluiceSubject')
      ? `To export the class of the Durable Objects, add to ${main}:\n\n  ${CLASS}`
      : ''
  const hasPolicies = !isOwn && !/['"][^'"\n]*sluice\.config(\.\w+)?['"]/.test(code)
  const lines = isOwn ? linesFor(main, code) : hasPolicies ? movingTo(main) : ''
  return {
    config,
    main: isWritten ? undefined : main,
    isGateway,
    hasPolicies,
    missing: all(lines, exported, objects),
  }
}

const all = (...parts: string[]): string | undefined =>
  parts.filter(Boolean).join('\n\n') || undefined

/** The lines that bind the class of Durable Objects. */
function objectLines(config: string): string {
  const lines = config.endsWith('.toml') ? BINDING : `${bindingIn(config)},\n${migrationIn(config)}`
  return `To bind the Durable Objects that count, add to ${config}:\n\n${indented(lines)}`
}

/** `main` in TOML or JSON with comments. wrangler, which parses both, may not be installed yet. */
function mainOf(text: string): string | undefined {
  const [, main] = /(?:^|[{,])\s*"?main"?\s*[:=]\s*["']([^"'\n]+)["']/m.exec(text) ?? []
  return main && posix.normalize(main)
}

/** The path by which a Worker imports the configuration. */
function pathFrom(main: string): string {
  const path = posix.relative(posix.dirname(main), 'sluice.config')
  return path.startsWith('.') ? path : `./${path}`
}

/** How a Worker that has policies of its own gets a configuration that the other commands read. */
const movingTo = (main: string) =>
  `${main} has policies of its own, so init wrote no sluice.config.ts. check, explain and replay read that
file. To use them, move the policies there as its default export, and import it in ${main}:

  import config from '${pathFrom(main)}'`

/** The lines that apply the policies in a Worker. */
function linesFor(main: string, code: string): string {
  const isHono = /['"]hono['"]/.test(code)
  const lines = [
    `import { ${isHono ? 'rateLimiter' : 'createSluice'} } from 'sluice'`,
    `import config from '${pathFrom(main)}'`,
    '',
    ...(isHono ? HONO : FETCH),
  ]
  return `To apply the policies, add to ${main}:\n\n${indented(lines.join('\n'))}`
}

const HONO = ['app.use(rateLimiter(config)) // before your routes']

const FETCH = [
  'const sluice = createSluice(config)',
  '',
  '// in fetch(request, env, ctx), around your code:',
  'const waitUntil = ctx.waitUntil.bind(ctx)',
  'const { response, finish } = await sluice.check(request, { env, waitUntil })',
  'return response ?? finish(await handle(request))',
]
