import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { CF_CONFIG, WRANGLER_FILES, wranglerFile } from './wrangler-config.ts'

/** The folder of the package.json that a file belongs to; its own folder if there is none. */
export function rootOf(file: string): string {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(file)
  }
}

/** The folders from that of a file up to the root of its project. */
function foldersOf(file: string): string[] {
  const root = rootOf(file)
  const folders = [dirname(file)]
  while (folders.at(-1) !== root) folders.push(dirname(folders.at(-1)!))
  return folders
}

/**
 * The problem of a field that names bindings, in a project without a configuration of wrangler. That of cf is TypeScript for the tools
 * of Cloudflare only: a name in it counts as bound.
 */
export function unbound(field: string, file: string, ...names: string[]): string[] {
  const folders = foldersOf(file)
  const cf = folders.map((folder) => join(folder, CF_CONFIG)).find((path) => existsSync(path))
  if (cf) {
    const text = readFileSync(cf, 'utf8')
    const missing = names.filter((name) => !text.includes(name))
    if (missing.length === 0) return []
    return [
      `${field}: ${CF_CONFIG} does not name ${missing.join(' and ')}. Sluice looks for names only in this configuration of cf`,
    ]
  }
  const places = folders.map((folder) => relative(process.cwd(), folder) || '.')
  const [last, ...others] = WRANGLER_FILES.toReversed()
  return [`${field}: no ${others.reverse().join(', ')} or ${last} in ${places.join(' or ')}`]
}

/** The configuration of wrangler for a file of a project: beside it, or above it in the project. It may not exist. */
export function wranglerFor(file: string): string {
  const found = foldersOf(file).map(wranglerFile)
  return found.find((path) => existsSync(path)) ?? found[0]!
}
