/** The module of `sluice build` does not change the names that the Worker exports, and may not exist yet. */
const withoutBuilt: Plugin = {
  name: 'without-built',
  setup(build) {
    const filter = /\bsluice\.built(\.[jt]s)?$/
    build.onResolve({ filter }, ({ path }) => ({ path, external: true }))
  },
}

/** Checks that the configuration of wrangler and the Worker have what `durableObjects()` needs. */
import { existsSync } from 'node:fs'
import { basename, dirname, relative } from 'node:path'
import type { Config } from '../../src/core/config/parse.ts'
import { bundle, type Plugin } from '../project/bundle.ts'
import { bindingIn, CLASS, creationIn, indented } from '../project/object-lines.ts'
import { unbound } from '../project/root.ts'
import { readWrangler } from '../project/wrangler-config.ts'

/**
 * What is missing for the store of a configuration, with the lines to write.
 * @param file the configuration of wrangler
 * @throws Error if a file that it needs does not exist, or has a mistake
 */
export async function objectProblems(
  { store }: Pick<Config, 'store'>,
  file: string,
): Promise<string[]> {
  if (!store?.own) return []
  const { binding } = store.own
  if (!existsSync(file)) return unbound('store', file, binding, 'SluiceSubject')
  const name = basename(file)
  const add = (problem: string, lines: string) => `store: ${problem}. Add:\n\n${indented(lines)}\n`
  const project = dirname(file)
  const wrangler = await readWrangler(project)
  const { objects, classes, has, main } = wrangler
  const problems: string[] = []
  const bound = objects.find((one) => one.name === binding)
  if (!bound) problems.push(add(`${name} has no binding ${binding}`, bindingIn(name, has, binding)))
  if (bound?.script_name) return problems // the class is part of another Worker
  const className = bound?.class_name ?? 'SluiceSubject'
  const storage = classes.get(className)
  if (!storage) {
    const lines = creationIn(project, name, has, className)
    problems.push(add(`${name} does not create ${className}`, lines))
  } else if (storage !== 'sqlite') {
    problems.push(
      `store: ${name} creates ${className} without SQLite. Write ${has.migrations ? 'new_sqlite_classes instead of new_classes' : 'the storage "sqlite"'}.`,
    )
  }
  const { exports } = await bundle(project, wrangler, {}, { plugins: [withoutBuilt] })
  if (!exports.includes(className)) {
    const line =
      className === 'SluiceSubject'
        ? CLASS
        : CLASS.replace('SluiceSubject', `SluiceSubject as ${className}`)
    problems.push(add(`${relative(project, main)} does not export ${className}`, line))
  }
  return problems
}
