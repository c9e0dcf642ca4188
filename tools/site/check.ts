/** Checks the built site: every link and anchor of a page leads somewhere, nothing is loaded from elsewhere, and the first page is small. */
import { gzipSync } from 'node:zlib'
import type { SiteFiles } from './pages.ts'

/** The most that the first page loads, compressed. */
export const MAX_FIRST_PAGE = 100 * 1024

/** The most words that all pages have together. What two pages say, one says. */
export const MAX_WORDS = 70_000

const textOf = (body: string | Uint8Array) =>
  typeof body === 'string' ? body : new TextDecoder().decode(body)

/** The file that Workers static assets send for a path. */
export function fileAt(files: SiteFiles, path: string): string | undefined {
  const bare = decodeURIComponent(path).replace(/^\//, '')
  const candidates = [bare, `${bare}.html`, `${bare}index.html`, `${bare}/index.html`]
  return candidates.find((name) => files.has(name))
}

const attributes = (html: string, pattern: RegExp) =>
  [...html.matchAll(pattern)].map(([, value]) => value!.replaceAll('&amp;', '&'))

const idsOf = (html: string) => new Set(attributes(html, /\sid="([^"]+)"/g))

/** What a page loads at once: scripts, styles, pictures and frames. */
const loaded = (html: string) => [
  ...attributes(html, /<(?:script|img|iframe)\b[^>]*\ssrc="([^"]+)"/g),
  ...attributes(
    html,
    /<link\b(?=[^>]*\srel="(?:stylesheet|modulepreload|preload|icon)")[^>]*\shref="([^"]+)"/g,
  ),
]

/** The mistakes in the links of all pages, one line for each. */
export function brokenLinks(files: SiteFiles): string[] {
  const pages = [...files].filter(([name]) => name.endsWith('.html'))
  const ids = new Map(pages.map(([name, body]) => [name, idsOf(textOf(body))]))
  return pages.flatMap(([name, body]) => {
    const html = textOf(body)
    const base = new URL(`/${name.replace(/(index)?\.html$/, '')}`, 'https://site.invalid')
    const outside = loaded(html).filter((target) => /^(https?:)?\/\//.test(target))
    const links = [...attributes(html, /<a\b[^>]*\shref="([^"]+)"/g), ...loaded(html)]
    const broken = [...new Set(links)].flatMap((target) => {
      const { origin, pathname, hash } = new URL(target, base)
      if (origin !== base.origin) return []
      const file = fileAt(files, pathname)
      if (!file) return [`${name}: ${target} leads nowhere`]
      const anchors = ids.get(file)
      // The playground reads its fragment itself.
      if (!hash || !anchors || file.startsWith('playground/')) return []
      return anchors.has(decodeURIComponent(hash.slice(1)))
        ? []
        : [`${name}: ${target}: the page has no such anchor`]
    })
    return [...broken, ...outside.map((target) => `${name}: loads ${target} from elsewhere`)]
  })
}

/** The compressed size of the first page with all that it loads at once, in bytes. */
export function firstPageSize(files: SiteFiles): number {
  const html = textOf(files.get('index.html')!)
  const names = new Set(
    loaded(html).flatMap(
      (target) => fileAt(files, new URL(target, 'https://site.invalid').pathname) ?? [],
    ),
  )
  const pictures = /\.(png|svg)$/
  return ['index.html', ...[...names].filter((name) => !pictures.test(name))]
    .map((name) => gzipSync(files.get(name)!).length)
    .reduce((sum, size) => sum + size, 0)
}

/** The words of the articles of all pages, without the navigation around them. Code counts too. */
export function wordsOf(files: SiteFiles): number {
  const inline = /<\/?(?:span|a|code|em|strong|sub|sup)\b[^>]*>/g
  return [...files]
    .filter(([name]) => name.endsWith('.html') && !name.startsWith('playground/'))
    .map(([, body]) => /<main\b[^>]*>(.*?)<\/main>/s.exec(textOf(body))?.[1] ?? '')
    .map((html) =>
      html
        .replace(/<svg.*?<\/svg>/gs, ' ')
        .replace(inline, '')
        .replace(/<[^>]+>/g, ' '),
    )
    .reduce((sum, text) => sum + (text.match(/\S+/g)?.length ?? 0), 0)
}
