import manifest from '../../package.json' with { type: 'json' }
import { withEndsOf } from './write.ts'

/** A package.json with its formatting. */
export type Fields = Record<string, unknown> & {
  name?: string
  scripts?: Record<string, string>
}

export interface Merged {
  text: string
  /** The name of the package. */
  name: string | undefined
  /** Scripts that the file has already, with other commands. They stay. */
  kept: string[]
  /** The script that builds the configuration before the app, if it did not; `undefined` otherwise. */
  prefixed: string | undefined
  /** The packages that the file did not have, as `name@version`. */
  added: string[]
}

const GROUPS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a package.json gets. */
export interface Additions {
  /** The version of Sluice, or where it is installed from. Defaults to the version of this command. */
  source?: string | undefined
  scripts?: Record<string, string>
  /** True to build the configuration in the script `build`, if there is one. */
  builds?: boolean
  /** Packages of this repository. */
  dependencies?: readonly string[]
  devDependencies?: readonly string[]
}

/** The script that `npm init` writes. */
const isPlaceholder = (script: string) => script.includes('Error: no test specified')

/**
 * Reads a package.json.
 * @throws SyntaxError if the text is not a JSON object
 */
export function readPackage(text: string): Fields {
  const before: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
  if (!isObject(before)) throw new SyntaxError('expected an object')
  const fields: Fields = before
  for (const name of ['scripts', ...GROUPS]) {
    if (!isObject(fields[name] ?? {})) throw new SyntaxError(`${name}: expected an object`)
  }
  return fields
}

/** True if a package.json names a package. */
export const hasPackage = (fields: Fields, name: string): boolean =>
  GROUPS.some((group) => name in Object(fields[group]))

/** Adds `sluice`, scripts and packages to the text of a package.json. Its other fields, their order and the formatting stay. */
export function mergePackage(text: string, additions: Additions = {}): Merged {
  const { source = manifest.version } = additions
  const fields = readPackage(text)
  const scripts = { ...fields.scripts }
  const kept: string[] = []
  for (const [name, command] of Object.entries(additions.scripts ?? {})) {
    const own = scripts[name]
    if (own === undefined || isPlaceholder(own)) scripts[name] = command
    else if (own !== command) kept.push(name)
  }
  const { build } = scripts
  const prefixed =
    additions.builds && build && !build.includes('sluice build')
      ? `sluice build && ${build}`
      : undefined
  if (prefixed) scripts.build = prefixed
  const versions: Record<string, string> = { ...manifest.devDependencies, sluice: source }
  const missing = (names: readonly string[]) =>
    Object.fromEntries(
      names.filter((name) => !hasPackage(fields, name)).map((name) => [name, versions[name]!]),
    )
  const library = missing(['sluice', ...(additions.dependencies ?? [])])
  const tools = missing(additions.devDependencies ?? [])
  const after = {
    ...fields,
    ...(Object.keys(scripts).length > 0 && { scripts }),
    ...withPackages(fields, 'dependencies', library),
    ...withPackages(fields, 'devDependencies', tools),
  }
  return {
    text: written(after, text),
    name: fields.name,
    kept,
    prefixed,
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
  const text = JSON.stringify(value, null, indent)
  return withEndsOf(like, like.endsWith('\n') ? `${text}\n` : text)
}
