/** The example configurations of the documentation: code blocks ```ts <name> that call `defineConfig`. */
import type { ConfigOptions } from '../../src/config/options.ts'
import { defineConfig } from '../../src/config/parse.ts'
import { type Block, blocksOf, pages } from './pages.ts'

export const isConfig = ({ language, name, code }: Block) =>
  language === 'ts' && name !== '' && code.includes('defineConfig(')

/** The code of an example as a module with a default export, without imports. */
export const exporting = (code: string) =>
  code
    .replace(/^import .*\n+/gm, '')
    .replace(/^(export default )?(?=defineConfig\()/m, 'export default ')

/** Evaluates an example. Returns the argument of `defineConfig`, after its check. */
export const configOf = (code: string): ConfigOptions =>
  new Function('defineConfig', exporting(code).replace('export default', 'return'))(defineConfig)

/** The examples of all pages. */
export const examples: Block[] = pages.flatMap(blocksOf).filter(isConfig)
