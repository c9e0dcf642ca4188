import { readFile } from 'node:fs/promises'

/** A file of dist without its extension, such as `index`. */
type Name = string

const declarationsOf = (name: Name) =>
  readFile(new URL(`../../dist/${name}.d.ts`, import.meta.url), 'utf8')

/** Removes comments, and the short names by which the files of the build import from each other. */
function withoutNoise(text: string): string {
  return text
    .replace(/^[ \t]*\/\*[\s\S]*?\*\/[ \t]*\n/gm, '')
    .replace(/^\/\/#.*\n/gm, '')
    .replace(/^((?:import|export) (?:type )?\{)(.*?)\}/gm, (_, head: string, names: string) => {
      const isImport = head.startsWith('import')
      const plain = names.split(',').map((name) => {
        const [one, other] = name.trim().split(' as ')
        return isImport ? (other ?? one!) : one!
      })
      return `${head} ${plain.sort().join(', ')} }`
    })
    .replace(/\n{2,}/g, '\n')
    .trim()
}

/** The files of the build that a declaration file imports. */
const importsOf = (text: string): Name[] =>
  [...text.matchAll(/from ["']\.{1,2}\/(shared\/[\w-]+)\.js["']/g)].map(([, name]) => name!)

/**
 * The public API as Markdown: the declarations of each entry, then those that entries share, without comments.
 * @param entries the subpaths of the package and their declaration files
 */
export async function apiReport(entries: ReadonlyMap<string, Name>): Promise<string> {
  const sections: string[] = []
  const shared = new Set<Name>()
  const add = async (title: string, name: Name) => {
    const text = await declarationsOf(name)
    for (const one of importsOf(text)) shared.add(one)
    sections.push(`## ${title}\n\n\`\`\`ts\n${withoutNoise(text)}\n\`\`\`\n`)
  }
  for (const [subpath, name] of entries) await add(subpath, name)
  for (const name of shared) await add(`Shared: ${name}`, name)
  return [
    '# Public API\n',
    'The declarations of the package, without comments. `npm run check:package -- --write` generates this file.\n',
    ...sections,
  ].join('\n')
}
