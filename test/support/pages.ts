/** The pages of the documentation, and the code blocks on them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** The text of a file of the repository. */
export const read = (path: string) => readFileSync(root + path, 'utf8')

/** The first group of each match, in order. */
export const found = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, first]) => first!)

const folders = ['docs', 'lua', 'packages', 'tools']
const inFolders = folders.flatMap((folder) =>
  readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => `${folder}/${name}`),
)
const inRoot = readdirSync(root).filter((name) => name.endsWith('.md'))

export interface Page {
  /** Relative to the root of the repository. */
  path: string
  text: string
}

export const pages: Page[] = [...inRoot, ...inFolders]
  .sort()
  .map((path) => ({ path, text: read(path) }))

export const pageAt = (path: string): Page => pages.find((page) => page.path === path)!

/** The text below a heading of a page. */
export const sectionOf = ({ text }: Page, heading: string) =>
  text.split(/^##+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''

export interface Block {
  page: string
  line: number
  language: string
  /** The second word after the fence, or ''. */
  name: string
  code: string
}

/** The fenced code blocks of a page, in order, also those of a list item. */
export function blocksOf({ path, text }: Page): Block[] {
  return [...text.matchAll(/^( *)```(\S*) *(\S*)\n(.*?)^\1```$/gms)].map((match) => ({
    page: path,
    line: text.slice(0, match.index).split('\n').length,
    language: match[2]!,
    name: match[3]!,
    code: match[4]!.replaceAll(new RegExp(`^${match[1]}`, 'gm'), ''),
  }))
}
