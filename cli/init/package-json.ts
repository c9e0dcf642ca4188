import manifest from '../../package.json' with { type: 'json' }
import { SCRIPTS } from './templates.ts'

/** A package.json with its formatting. */
type Fields = Record<string, unknown> & {
  name?: string
  scripts?: Record<string, string>
}

export interface Merged {
  text: string
  /** The name of the package. */
  name: string | undefined
  /** Scripts that the file has already, with other commands. They stay. */
  kept: string[]
  /** The packages that the file did not have, as `name@version`. */
  added: string[]
}

const GROUPS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The script that `npm init` writes. */
const isPlaceholder = (script: string) => script.includes('Error: no test specified')

/**
 * Adds the scripts and packages of Sluice to the text of a package.json. Its other fields, their order and the formatting stay.
 * @param source the version of Sluice, or where it is installed from
 * @throws SyntaxError if the text is not a JSON object
 */
export function mergePackage(text: string, source: string = manifest.version): Merged {
  const before: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(before)) throw new SyntaxError('expected an object')
  const fields: Fields = before
  for (const name of ['scripts', ...GROUPS]) {
    if (!isObject(fields[name] ?? {})) throw new SyntaxError(`${name}: expected an object`)
  }
  const scripts = { ...fields.scripts }
  const kept: string[] = []
  for (const [name, command] of Object.entries(SCRIPTS)) {
    const own = scripts[name]
    if (own === undefined || isPlaceholder(own)) scripts[name] = command
    else if (own !== command) kept.push(name)
  }
  const has = (name: string) => GROUPS.some((group) => name in Object(fields[group]))
  const missing = (packages: Record<string, string>) =>
    Object.fromEntries(Object.entries(packages).filter(([name]) => !has(name)))
  const { hono, wrangler, vitest } = { ...manifest.dependencies, ...manifest.devDependencies }
  const library = missing({ sluice: source, hono })
  const tools = missing({ wrangler, vitest })
  const after = {
    ...fields,
    scripts,
    ...withPackages(fields, 'dependencies', library),
    ...withPackages(fields, 'devDependencies', tools),
  }
  return {
    text: written(after, text),
    name: fields.name,
    kept,
    added: Object.entries({ ...library, ...tools }).map((one) => one.join('@')),
  }
}

/** Adds packages to a group, in alphabetical order, as npm does. */
function withPackages(fields: Fields, group: string, packages: Record<string, string>) {
  if (Object.keys(packages).length === 0) return {}
  const all = { ...Object(fields[group]), ...packages } as Record<string, string>
  const sorted = Object.entries(all).sort(([one], [other]) => (one < other ? -1 : 1))
  return { [group]: Object.fromEntries(sorted) }
}

/** Writes JSON with the indentation, line ends and final newline of a text. */
function written(value: object, like: string): string {
  const [, indent = '  '] = /^\{\r?\n([ \t]+)/.exec(like.trimStart()) ?? []
  const end = /(\r?\n)?$/.exec(like)![0]
  const text = JSON.stringify(value, null, indent) + end.replace('\r', '')
  return like.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text
}
