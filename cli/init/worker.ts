import { existsSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { bindingIn, CLASS, creationIn, type Has, indented } from '../project/object-lines.ts'
import { CF_CONFIG, unreadByCf, wranglerFile } from '../project/wrangler-config.ts'
import { WORKER } from './templates.ts'
import { textOf } from './write.ts'

/** The Worker of a folder that has a configuration of wrangler or cf. init changes neither of them. */
export interface Existing {
  /** True if the configuration is that of cf. */
  isCf: boolean
  /** The path of the user's own Worker; `undefined` if init writes the Worker. */
  main: string | undefined
  /** True if that Worker uses `createGateway`. */
  isGateway: boolean
  /** True if that Worker uses Sluice without a `sluice.config`: it has policies of its own. */
  hasPolicies: boolean
  /** What the user must add, with lines of code; `undefined` if nothing is missing. */
  missing: string | undefined
}

/**
 * Finds the Worker of a folder; `undefined` without a configuration of wrangler or cf.
 * @param exec runs a command of an installed package
 * @throws Error if the configuration is not JSON with comments
 */
export async function existingWorker(
  folder: string,
  inObjects: boolean,
  exec: string,
): Promise<Existing | undefined> {
  const wrangler = wranglerFile(folder)
  const isCf = !existsSync(wrangler) && existsSync(join(folder, CF_CONFIG))
  const path = isCf ? join(folder, CF_CONFIG) : wrangler
  if (!existsSync(path)) return undefined
  const config = basename(path)
  const text = (await textOf(path)) ?? ''
  const { main, has, hasBuild } = fieldsOf(config, text)
  const objects =
    inObjects && !text.includes('SluiceSubject') ? objectLines(folder, config, has) : ''
  const code = main === undefined ? undefined : await textOf(join(folder, main))
  if (main === undefined || code === undefined) {
    const line = isCf
      ? `entrypoint: './${WORKER}',`
      : config.endsWith('.toml')
        ? `main = "${WORKER}"`
        : `"main": "${WORKER}"`
    const missing = main === WORKER ? '' : `To run ${WORKER}, write into ${config}:\n\n  ${line}`
    return {
      isCf,
      main: undefined,
      isGateway: true,
      hasPolicies: false,
      missing: all(
        missing,
        isCf || text.includes('sluice build')
          ? ''
          : buildLines(config, `${exec} sluice build`, hasBuild),
        objects,
      ),
    }
  }
  const isOwn = !/['"](sluice|[^'"\n]*sluice\.built(\.\w+)?)['"]/.test(code)
  const isGateway = !isOwn && /\bcreateGateway\b/.test(code)
  const isWritten = main === WORKER && isGateway
  const exported =
    inObjects && !isWritten && !code.includes('SluiceSubject')
      ? `To export the class of the Durable Objects, add to ${main}:\n\n  ${CLASS}`
      : ''
  const hasPolicies = !isOwn && !/['"][^'"\n]*sluice\.(config|built)(\.\w+)?['"]/.test(code)
  const lines = isOwn ? linesFor(main, code) : hasPolicies ? movingTo(main) : ''
  return {
    isCf,
    main: isWritten ? undefined : main,
    isGateway,
    hasPolicies,
    missing: all(lines, exported, objects),
  }
}

/** The lines by which wrangler writes the module that the Worker imports. A second `build` would replace that of the configuration. */
const buildLines = (config: string, command: string, hasBuild: boolean) => {
  if (hasBuild)
    return `To build the configuration before the Worker, begin the command of build in ${config} with:\n\n  ${command} &&`
  const lines = config.endsWith('.toml')
    ? `[build]\ncommand = "${command}"\nwatch_dir = "sluice.config.ts"`
    : `"build": { "command": "${command}", "watch_dir": "sluice.config.ts" }`
  return `To build the configuration before the Worker, write into ${config}:\n\n${indented(lines)}`
}

const all = (...parts: string[]): string | undefined =>
  parts.filter(Boolean).join('\n\n') || undefined

/** The lines that bind and create the class of Durable Objects. */
function objectLines(folder: string, config: string, has: Has): string {
  if (config === CF_CONFIG) return unreadByCf('SLUICE_SUBJECT', 'SluiceSubject')
  const toml = config.endsWith('.toml')
  const lines = [bindingIn(config, has), creationIn(folder, config, has)].join(
    toml ? '\n\n' : ',\n',
  )
  return `To bind the Durable Objects that count, add to ${config}:\n\n${indented(lines)}`
}

/** The fields that init needs. wrangler, which reads all of them, may not be installed yet. */
function fieldsOf(
  file: string,
  text: string,
): { main: string | undefined; has: Has; hasBuild: boolean } {
  if (file.endsWith('.toml') || file === CF_CONFIG) {
    const top = file === CF_CONFIG ? text : text.split(/^\s*\[/m)[0]!
    const [, main] = /^\s*(?:main\s*=|entrypoint\s*:)\s*["']([^"'\n]+)["']/m.exec(top) ?? []
    const has = (name: string) => new RegExp(`^\\s*\\[+\\s*${name}\\b`, 'm').test(text)
    return {
      main: main && posix.normalize(main),
      has: {
        bindings: has('durable_objects'),
        exports: has('exports'),
        migrations: has('migrations'),
      },
      hasBuild: has('build') || /^\s*build\s*[.=]/m.test(top),
    }
  }
  const { main, durable_objects, exports, migrations, build } = jsonOf(file, text)
  return {
    main: typeof main === 'string' ? posix.normalize(main) : undefined,
    has: {
      bindings: Boolean(durable_objects),
      exports: Boolean(exports),
      migrations: Boolean(migrations),
    },
    hasBuild: Boolean(build),
  }
}

/** JSON with comments and trailing commas. */
function jsonOf(file: string, text: string): Record<string, unknown> {
  const without = (pattern: string, from: string) =>
    from.replace(new RegExp(`("(?:[^"\\\\]|\\\\.)*")|${pattern}`, 'g'), '$1')
  const plain = without('//.*|/\\*[^]*?\\*/', text.replace(/^\uFEFF/, ''))
  try {
    return Object(JSON.parse(without(',(?=\\s*[}\\]])', plain)))
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}. Nothing was written.`)
  }
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
