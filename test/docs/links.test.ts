/** Every link between pages leads to a file and a heading that exist. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import GithubSlugger from 'github-slugger'
import { expect, test } from 'vitest'
import { blocksOf, found, type Page, pageAt, pages, read, root } from '../support/pages.ts'

const prose = (text: string) =>
  text.replace(/^( *)(```|~~~).*?^\1\2$/gms, '').replace(/`[^`\n]*`/g, '`')

/** The anchors of a page: its headings, as GitHub names them, and elements with an id. */
function anchorsOf({ text }: Page): Set<string> {
  const slugger = new GithubSlugger()
  const bare = text.replace(/^( *)(```|~~~).*?^\1\2$/gms, '')
  const headings = found(bare, /^#{1,6} (.+)$/gm).map((heading) =>
    slugger.slug(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')),
  )
  return new Set([...headings, ...found(bare, /<a id="([^"]+)">/g)])
}

const anchors = new Map(pages.map((page) => [page.path, anchorsOf(page)]))

test.each(pages.map((page) => [page.path, page] as const))(
  'Every relative link on %s leads to a file and a heading that exist.',
  (path, { text }) => {
    const broken: string[] = []
    for (const target of found(prose(text), /\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [file, anchor] = target.split('#')
      const found = file ? join(dirname(path), file) : path
      const known = anchors.get(found)
      if (!existsSync(root + found)) broken.push(`${target}: no such file`)
      else if (anchor && known && !known.has(anchor)) broken.push(`${target}: no such heading`)
    }
    expect(broken).toEqual([])
  },
)

test('Every page of docs/ is linked from the index of the documentation.', () => {
  const index = pageAt('docs/README.md').text
  const linked = found(index, /\]\(([^)#\s]+)/g).map((target) => join('docs', target))
  const others = pages.map(({ path }) => path).filter((path) => /^docs\/(?!README)/.test(path))
  expect(others.filter((path) => !linked.includes(path))).toEqual([])
})

test.each([
  ['nginx', 'nginx.conf'],
  ['caddy', 'Caddyfile'],
  ['traefik', 'dynamic.yml'],
  ['envoy', 'envoy.yaml'],
])(
  'The guide for %s shows the whole file %s, since the package does not contain it.',
  (proxy, file) => {
    const shown = blocksOf(pageAt(`docs/guides/${proxy}.md`)).map(({ code }) => code)
    expect(shown).toContain(read(`examples/${proxy}/${file}`))
  },
)
