/** The pages of the documentation, and the code blocks on them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

const folders = ['docs', 'lua', 'packages', 'bench']
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
  .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))

export interface Block {
  page: string
  line: number
  language: string
  /** The second word after the fence, or ''. */
  name: string
  code: string
}

/** The fenced code blocks of a page, in order. */
export function blocksOf({ path, text }: Page): Block[] {
  return [...text.matchAll(/^```(\S*) *(\S*)\n(.*?)^```$/gms)].map((match) => ({
    page: path,
    line: text.slice(0, match.index).split('\n').length,
    language: match[1]!,
    name: match[2]!,
    code: match[3]!,
  }))
}
