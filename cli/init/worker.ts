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
    return { config, main: undefined, isGateway: true, missing: all(missing, objects) }
  }
  const isOwn = !/['"]sluice['"]/.test(code)
  const isGateway = !isOwn && /\bcreateGateway\b/.test(code)
  const isWritten = main === WORKER && isGateway
  const exported =
    inObjects && !isWritten && !code.includes('SluiceSubject')
      ? `To export the class of the Durable Objects, add to ${main}:\n\n  ${CLASS}`
      : ''
  const lines = isOwn ? linesFor(main, code) : ''
  return {
    config,
    main: isWritten ? undefined : main,
    isGateway,
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

/** The lines that apply the policies in a Worker. */
function linesFor(main: string, code: string): string {
  const config = posix.relative(posix.dirname(main), 'sluice.config')
  const path = config.startsWith('.') ? config : `./${config}`
  const isHono = /['"]hono['"]/.test(code)
  const lines = [
    `import { ${isHono ? 'rateLimiter' : 'createSluice'} } from 'sluice'`,
    `import config from '${path}'`,
    '',
    ...(isHono ? HONO : FETCH),
  ]
  return `To apply the policies, add to ${main}:\n\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}`
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
