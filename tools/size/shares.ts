import { SourceMap } from 'node:module'
import { gzipSync } from 'node:zlib'

/** A bundled and minified script, with its source map. */
export interface Script {
  code: string
  map: string
}

/** A part of a script: a module, or all modules of a folder or package. */
export interface Share {
  name: string
  /** The bytes that the compressed script would lose without this part. The sum is less than the whole, because parts share text. */
  gzip: number
}

export const gzipSize = (text: string): number => gzipSync(text, { level: 9 }).length

/** The name of a module: the path in its package, or in this repository. */
const moduleOf = (source: string) =>
  /.*\/node_modules\/(.*)/.exec(source)?.[1] ??
  /\b(?:src|cli|tools)\/.*/.exec(source)?.[0] ??
  'bundler'

/** The package or the folder of src that contains a module. */
export const groupOf = (name: string): string =>
  (/^src\/(?:(?:core|features|hosts)\/)?[^/]+|^@[^/]+\/[^/]+|^[^/]+/.exec(name) ?? [name])[0]

/** The shares of a script, the largest first. */
export function sharesOf({ code, map }: Script, nameOf = (name: string) => name): Share[] {
  const origins = new SourceMap(JSON.parse(map))
  const owners: string[] = []
  code.split('\n').forEach((line, row) => {
    for (let column = 0; column <= line.length; column += 1) {
      const entry = origins.findEntry(row, column)
      owners.push(nameOf(moduleOf('originalSource' in entry ? entry.originalSource : '')))
    }
  })
  const whole = gzipSize(code)
  const without = (name: string) =>
    gzipSize([...code].filter((_, index) => owners[index] !== name).join(''))
  return [...new Set(owners)]
    .map((name) => ({ name, gzip: whole - without(name) }))
    .sort((one, other) => other.gzip - one.gzip)
}
