/** Prepares the pages of the repository for the site: the same folders, with links that the site can follow. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { examples } from '../../site/playground/scenarios.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(root + path, 'utf8')

/** A file of the site, by its path. */
export type SiteFiles = Map<string, string | Uint8Array>

/** The pages of the site, by their paths in the repository. */
export function pagePaths(): string[] {
  const inDocs = readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
  const ofPackages = readdirSync(`${root}packages`).map((name) => `packages/${name}/README.md`)
  return [
    ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'lua/README.md'],
    ...['test/README.md', 'tools/bench/README.md'],
    ...ofPackages.filter((path) => existsSync(root + path)),
    ...inDocs,
  ].sort()
}

/** `README.md` is the page of its folder. */
const sitePath = (path: string) => path.replace(/(^|\/)README\.md$/, '$1index.md')

/** Source files that pages link to are text files of the site. */
const SOURCE = 'source'

/** The Markdown of all pages, the pictures beside them, and the source files that they link to. */
export function preparePages(): SiteFiles {
  const files: SiteFiles = new Map()
  const paths = pagePaths()
  for (const path of paths) files.set(sitePath(path), prepared(path, paths, files))
  return files
}

function prepared(path: string, paths: string[], files: SiteFiles): string {
  return withPlayground(path, read(path))
    .split(/^( *(?:```|~~~).*?^ *(?:```|~~~)$)/gms)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replace(
            /\]\(([^)\s]+)\)/g,
            (_, target) => `](${linkOf(target, path, paths, files)})`,
          ),
    )
    .join('')
}

/** The link of the site for a link of the repository. */
function linkOf(target: string, from: string, paths: string[], files: SiteFiles): string {
  if (/^([a-z]+:|#|\/)/.test(target)) return target
  const [file = '', ...anchor] = target.split(/(?=#)/)
  const found = normalize(join(dirname(from), file)).replace(/\/$/, '')
  if (paths.includes(found)) return [sitePath(file), ...anchor].join('')
  if (!existsSync(root + found)) throw new Error(`${from}: the link ${target} leads nowhere`)
  if (/\.(svg|png)$/.test(found)) {
    files.set(found, readFileSync(root + found))
    return file.startsWith('.') ? file : `./${file}`
  }
  const isFolder = statSync(root + found).isDirectory()
  const shown = `${SOURCE}/${found}.txt`
  files.set(`public/${shown}`, isFolder ? `${readdirSync(root + found).join('\n')}\n` : read(found))
  return `/${shown}`
}

const frame = (name: string, title: string) =>
  `<iframe class="playground" src="/playground/?embed#${name}" title="Playground: ${title}" loading="lazy"></iframe>`

/**
 * Embeds the playground: a paragraph that is only a link to an example of docs/playground.md becomes the example itself. On that page,
 * each example has a link to the whole playground.
 */
function withPlayground(path: string, text: string): string {
  if (path === 'docs/playground.md') {
    return examples.reduce(
      (page, { title, name }) =>
        page.replace(
          new RegExp(`^### ${title}$`, 'm'),
          `$&\n\n<a href="/playground/#${name}" target="_self">Open this example</a>`,
        ),
      text.replace(/^# Playground$/m, `$&\n\n${frame(examples[0]!.name, examples[0]!.title)}`),
    )
  }
  return text.replace(
    /^\[([^\]]*)\]\([./]*playground\.md#([\w-]+)\)$/gm,
    (_, title: string, name: string) => frame(name, title),
  )
}

interface SidebarItem {
  text: string
  link?: string
  items?: SidebarItem[]
  collapsed?: boolean
}

/** The sidebar: the tables of docs/README.md, so that both have the same pages. */
export function sidebar(): SidebarItem[] {
  const sections = read('docs/README.md').split(/^## /m).slice(1)
  const start: SidebarItem[] = [
    { text: 'Overview', link: '/' },
    { text: 'Tutorial', link: '/docs/tutorial' },
  ]
  return [
    { text: 'Start', items: start },
    ...sections.map((section): SidebarItem => {
      const [text = ''] = section.split('\n', 1)
      const links = [...section.matchAll(/\[([^\]]+)\]\(([^)#\s]+)\)/g)]
      return {
        text,
        items: links.map(([, title, target]) => ({
          text: title!.replaceAll('`', ''),
          link: `/${sitePath(normalize(join('docs', target!)))
            .replace(/(^|\/)index\.md$/, '$1')
            .replace(/\.md$/, '')}`,
        })),
      }
    }),
  ]
}
