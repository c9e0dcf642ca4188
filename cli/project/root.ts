import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { WRANGLER_FILES, wranglerFile } from './wrangler-config.ts'

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

/** Where `wranglerFor` looks: `no wrangler.json, … in src or .`. */
export function noWrangler(file: string): string {
  const folders = foldersOf(file).map((folder) => relative(process.cwd(), folder) || '.')
  const [last, ...others] = WRANGLER_FILES.toReversed()
  return `no ${others.reverse().join(', ')} or ${last} in ${folders.join(' or ')}`
}

/** The configuration of wrangler for a file of a project: beside it, or above it in the project. It may not exist. */
export function wranglerFor(file: string): string {
  const found = foldersOf(file).map(wranglerFile)
  return found.find((path) => existsSync(path)) ?? found[0]!
}
