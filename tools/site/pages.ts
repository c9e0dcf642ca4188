/** Prepares the pages of the site from those of the repository: which pages it has, their links, their descriptions, the sidebar. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { examples } from '../../site/playground/scenarios.ts'
import { REPOSITORY } from './addresses.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(root + path, 'utf8')

/** A file of the site, by its path. */
export type SiteFiles = Map<string, string | Uint8Array>

/** The first page of the site. A link to README.md, the first page of the repository, leads there. */
const HOME = 'site/home.md'
/** The index of the documentation. Its tables are the sidebar. */
const INDEX = 'docs/README.md'
/** The last section of the index, whose pages are for contributors. They are no pages of the site, and the site does not list them. */
const CONTRIBUTE = 'Contribute'

interface Link {
  text: string
  /** The path of a page in the repository. */
  page: string
}

interface Section {
  text: string
  links: Link[]
  /** The sections below this one. */
  parts: Section[]
}

function sectionsOf(markdown: string, level: number): Section[] {
  const mark = '#'.repeat(level)
  return markdown
    .split(new RegExp(`^${mark} `, 'm'))
    .slice(1)
    .map((section) => {
      const [text = ''] = section.split('\n', 1)
      const [own = ''] = section.split(`\n${mark}# `, 1)
      const links = [...own.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)].map(([, label, target]) => ({
        text: label!.replaceAll('`', ''),
        page: normalize(join(dirname(INDEX), target!)),
      }))
      return { text, links, parts: sectionsOf(section, level + 1) }
    })
}

const forUsers = () => sectionsOf(read(INDEX), 2).filter(({ text }) => text !== CONTRIBUTE)

/** The pages of the site, by their paths in the repository. */
export function pagePaths(): string[] {
  const pagesOf = ({ links, parts }: Section): string[] => [
    ...links.map(({ page }) => page),
    ...parts.flatMap(pagesOf),
  ]
  return [...new Set([HOME, INDEX, ...forUsers().flatMap(pagesOf)])].sort()
}

/** `README.md` is the page of its folder. */
const sitePath = (path: string) =>
  path === HOME || path === 'README.md' ? 'index.md' : path.replace(/\/README\.md$/, '/index.md')

/** The address of a page on the site. */
export const addressOf = (path: string): string =>
  `/${sitePath(path)
    .replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '')}`

/** Source files that pages link to are text files of the site, while the repository has no address. */
const SOURCE = 'source'

/** The Markdown of all pages, the pictures beside them, and the source files that they link to. */
export function preparePages(): SiteFiles {
  const files: SiteFiles = new Map()
  const paths = pagePaths()
  const changes = lastChanges(paths)
  for (const path of paths)
    files.set(sitePath(path), prepared(path, paths, files, changes.get(path)))
  return files
}

/** The time of the last commit that changed each file. Nothing outside of a clone. */
function lastChanges(paths: string[]): Map<string, string> {
  const args = ['log', '--format=%x00%cI', '--name-only', '--', ...paths]
  const { stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 30 })
  const commits = (stdout ?? '').split('\0').map((commit) => commit.trim().split('\n'))
  const oldestFirst = commits.reverse()
  return new Map(oldestFirst.flatMap(([time, ...names]) => names.map((name) => [name, time!])))
}

const CODE = /^( *(?:```|~~~).*?^ *(?:```|~~~)$)/gms

function prepared(path: string, paths: string[], files: SiteFiles, changed?: string): string {
  const whole = read(path)
  const shown = path === INDEX ? whole.split(`\n## ${CONTRIBUTE}\n`)[0]! : whole
  const text = withPlayground(path, shown)
    .split(CODE)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replace(
            /\]\(([^)\s]+)\)/g,
            (_, target) => `](${linkOf(target, path, paths, files)})`,
          ),
    )
    .join('')
  if (text.startsWith('---\n')) return text
  const edit = REPOSITORY ? { edit: editAddress(path) } : {}
  const about = { description: descriptionOf(text), ...edit }
  const lines = Object.entries(about).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (changed) lines.push(`lastUpdated: ${changed}`)
  return `---\n${lines.join('\n')}\n---\n\n${text}`
}

const editAddress = (path: string) => `${REPOSITORY}/edit/main/${path}`

/** The first paragraph of a page, as plain text: whole sentences of at most 200 characters, at least one. */
export function descriptionOf(markdown: string): string {
  const paragraph = markdown
    .replace(CODE, '')
    .split(/\n{2,}/)
    .find((part) => /^[A-Z`*[]/.test(part))
  const text = (paragraph ?? '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]*>|[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  let description = ''
  for (const sentence of text.split(/(?<=[.!?]) (?=[A-Z])/)) {
    if (description && description.length + sentence.length > 200) break
    description += (description && ' ') + sentence
  }
  return description.replace(/:$/, '.')
}

/** The link of the site for a link of the repository. */
function linkOf(target: string, from: string, paths: string[], files: SiteFiles): string {
  if (/^([a-z]+:|#|\/)/.test(target)) return target
  const [file = '', ...anchor] = target.split(/(?=#)/)
  const found = normalize(join(dirname(from), file)).replace(/\/$/, '')
  if (found === 'README.md' || paths.includes(found)) return [addressOf(found), ...anchor].join('')
  if (!existsSync(root + found)) throw new Error(`${from}: the link ${target} leads nowhere`)
  if (/\.(svg|png)$/.test(found)) {
    for (const one of [found, darkOf(found)])
      if (existsSync(root + one)) files.set(one, readFileSync(root + one))
    return file.startsWith('.') ? file : `./${file}`
  }
  if (REPOSITORY) return [`${REPOSITORY}/blob/main/${found}`, ...anchor].join('')
  const isFolder = statSync(root + found).isDirectory()
  const shown = `${SOURCE}/${found}.txt`
  files.set(`public/${shown}`, isFolder ? `${readdirSync(root + found).join('\n')}\n` : read(found))
  return `/${shown}`
}

/** The same picture in the dark scheme, if there is one. */
const darkOf = (picture: string): string => picture.replace(/\.png$/, '-dark.png')

const frame = (name: string, title: string) =>
  `<iframe class="playground" src="/playground/?embed#${name}" title="Playground: ${title}" loading="lazy"></iframe>`

/**
 * Embeds the playground: a paragraph that is only a link to an example of docs/playground.md becomes the example itself. On that page,
 * the picture does, and each example has a link to the whole playground.
 */
function withPlayground(path: string, text: string): string {
  if (path === 'docs/playground.md') {
    return examples.reduce(
      (page, { title, name }) =>
        page.replace(
          new RegExp(`^### ${title}$`, 'm'),
          `$&\n\n<a href="/playground/#${name}" target="_self">Open this example</a>`,
        ),
      text.replace(/^<picture>.*$/m, frame(examples[0]!.name, examples[0]!.title)),
    )
  }
  return text.replace(
    /^\[([^\]]*)\]\([./]*playground\.md#([\w-]+)\)$/gm,
    (_, title: string, name: string) => frame(name, title),
  )
}

export interface SidebarItem {
  text: string
  link?: string
  items?: SidebarItem[]
  collapsed?: boolean
}

/** The sidebar: the sections of docs/README.md. All but the first are closed until a page of theirs is open. */
export function sidebar(): SidebarItem[] {
  const itemOf = ({ text, links, parts }: Section): SidebarItem => ({
    text,
    collapsed: true,
    items: [
      ...links.map(({ text, page }) => ({ text, link: addressOf(page) })),
      ...parts.map(itemOf),
    ],
  })
  return forUsers().map((section, index) => ({ ...itemOf(section), collapsed: index > 0 }))
}
