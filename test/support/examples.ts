/** The configurations that the documentation shows: code blocks ```ts <name> with a call of `defineConfig`. */
import type { ConfigOptions } from '../../src/config/options.ts'
import { defineConfig } from '../../src/config/parse.ts'
import { type Block, blocksOf, pages } from './pages.ts'

export const isConfig = ({ language, name, code }: Block) =>
  language === 'ts' && name !== '' && code.includes('defineConfig(')

/** The code as a module, without its imports. */
export const exporting = (code: string) =>
  code
    .replace(/^import .*\n+/gm, '')
    .replace(/^(export default )?(?=defineConfig\()/m, 'export default ')

/** What an example hands to `defineConfig`, which checks it. */
export const configOf = (code: string): ConfigOptions =>
  new Function('defineConfig', exporting(code).replace('export default', 'return'))(defineConfig)

/** All examples, on all pages. */
export const examples: Block[] = pages.flatMap(blocksOf).filter(isConfig)
