/** The example configurations of the documentation: code blocks ```ts <name> that call `defineConfig`. */

import type { ConfigOptions } from '../../src/core/config/options.ts'
import { entries, evaluate } from './entries.ts'
import { type Block, blocksOf, pages } from './pages.ts'

export const isConfig = ({ language, name, code }: Block) =>
  language === 'ts' && name !== '' && code.includes('defineConfig(')

/** The code of an example as a module with a default export, without imports. */
export const exporting = (code: string) =>
  code
    .replace(/^import .*\n+/gm, '')
    .replace(/^(export default )?(?=defineConfig\()/m, 'export default ')

/** A function whose result is its name and options in JSON. `test/docs/examples-worker.ts` calls the function with them. */
const inJson =
  (maker: string, make: (options: never) => object) =>
  (options: object = {}) =>
    Object.assign(make(options as never), { toJSON: () => ({ maker, options }) })

const { defineConfig: _, ...others } = entries
const jsonEntries = Object.fromEntries(
  Object.entries(others).map(([name, make]) => [name, inJson(name, make)]),
)

/** Evaluates an example. Returns the argument of `defineConfig`, after its check. */
export const configOf = (code: string): ConfigOptions =>
  evaluate(exporting(code).replace('export default', 'return'), jsonEntries)

/** The examples of all pages. */
export const examples: Block[] = pages.flatMap(blocksOf).filter(isConfig)
