/** The lines that Durable Objects need in the configuration of wrangler, and in the Worker. */
import { extname } from 'node:path'
import { knowsExports } from './tools.ts'

/** The line that a Worker needs. */
export const CLASS = "export { SluiceSubject } from 'sluice/durable-objects'"

/** The names that `durableObjects()` has without options. */
const BINDING = 'SLUICE_SUBJECT'
const CLASS_NAME = 'SluiceSubject'

/** The fields about Durable Objects that a configuration has. wrangler refuses one with `exports` and `migrations`. */
export interface Has {
  bindings: boolean
  exports: boolean
  migrations: boolean
}

const isToml = (file: string) => extname(file) === '.toml'

/** Fields as lines of JSON. */
const json = (fields: object) => JSON.stringify(fields, null, 2).slice(2, -2).replace(/^ {2}/gm, '')

/** Lines for a field of JSON that exists: a second field of its name would replace it. */
const into = (field: string, lines: string) => `// in "${field}":\n${lines}`

/** The lines that bind a class, in TOML or JSON by the name of the file. */
export function bindingIn(file: string, has: Has, name = BINDING, className = CLASS_NAME): string {
  if (isToml(file))
    return `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "${className}"`
  const entry = { name, class_name: className }
  return has.bindings
    ? into('durable_objects.bindings', JSON.stringify(entry))
    : json({ durable_objects: { bindings: [entry] } })
}

/**
 * The lines that create a class with SQLite, in TOML or JSON by the name of the file: in the field that the configuration has, or in
 * `exports` if the project's wrangler knows that field.
 */
export function creationIn(
  project: string,
  file: string,
  has: Has,
  className = CLASS_NAME,
): string {
  if (!has.migrations && (has.exports || knowsExports(project))) {
    if (isToml(file)) return `[exports.${className}]\ntype = "durable-object"\nstorage = "sqlite"`
    const entry = { [className]: { type: 'durable-object', storage: 'sqlite' } }
    return has.exports ? into('exports', json(entry)) : json({ exports: entry })
  }
  if (isToml(file)) return `[[migrations]]\ntag = "sluice-1"\nnew_sqlite_classes = ["${className}"]`
  const entry = { tag: 'sluice-1', new_sqlite_classes: [className] }
  return has.migrations ? into('migrations', JSON.stringify(entry)) : json({ migrations: [entry] })
}

/** Moves lines to the right, as a block in a message. */
export const indented = (lines: string) => lines.replace(/^(?=.)/gm, '  ')
