/** The pages of the site, and the checks of its links, without a build. */
import { describe, expect, test } from 'vitest'
import { examples } from '../../site/playground/scenarios.ts'
import { brokenLinks, fileAt, firstPageSize } from '../../tools/site/check.ts'
import { pagePaths, preparePages, type SiteFiles, sidebar } from '../../tools/site/pages.ts'
import { pageAt, sectionOf } from '../support/pages.ts'

const prepared = preparePages()
const textOf = (path: string) => prepared.get(path) as string

describe('a page of the repository on the site', () => {
  test('A link to a README is a link to the index of its folder.', () => {
    expect(textOf('index.md')).toContain('](docs/index.md)')
    expect(prepared.has('docs/index.md')).toBe(true)
  })

  test('A link to a source file leads to its text on the site.', () => {
    expect(textOf('docs/architecture.md')).toContain('](/source/src/core/pipeline.ts.txt)')
    expect(prepared.get('public/source/src/core/pipeline.ts.txt')).toContain('checkRequest')
  })

  test('Code blocks stay as they are.', () => {
    const code = (text: string) => text.match(/^```.*?^```$/gms)
    const path = 'docs/reference/configuration.md'
    expect(code(textOf(path))).toEqual(code(pageAt(path).text))
  })

  test('A picture is beside its page.', () => {
    expect(prepared.get('docs/explanation/algorithms.svg')).toBeInstanceOf(Uint8Array)
  })

  test('The section of each algorithm embeds its worst case.', () => {
    const page = textOf('docs/explanation/algorithms.md')
    const embedded = [...page.matchAll(/<iframe [^>]*src="\/playground\/\?embed#([\w-]+)"/g)]
    const names = embedded.map(([, name]) => name)
    expect(names.sort()).toEqual([
      'concurrency',
      'fixed-window',
      'gcra',
      'sliding-log',
      'sliding-window',
      'token-bucket',
    ])
  })

  test.each(examples)(
    'docs/playground.md explains the example $name, and the site opens it.',
    ({ title, name, look }) => {
      const section = sectionOf(pageAt('docs/playground.md'), title)
      expect(section).toContain(look.split(/[.:]/)[0])
      expect(textOf('docs/playground.md')).toContain(`href="/playground/#${name}"`)
    },
  )
})

test('The sidebar has every page of the index, and each link is a page.', () => {
  const links = sidebar().flatMap(({ items = [] }) => items.map(({ link }) => link!))
  const pages = pagePaths().map(
    (path) => `/${path.replace(/(^|\/)README\.md$/, '$1').replace(/\.md$/, '')}`,
  )
  expect(links.filter((link) => !pages.includes(link))).toEqual([])
  expect(
    pages.filter(
      (page) => /^\/docs\/(guides|reference|explanation)\//.test(page) && !links.includes(page),
    ),
  ).toEqual([])
})

describe('the checks', () => {
  const site = (more: Record<string, string>): SiteFiles =>
    new Map(
      Object.entries({ 'index.html': '<h1 id="top">x</h1>', 'docs/a.html': '<p id="b">', ...more }),
    )

  test.each([
    ['<a href="/docs/a#b">', []],
    ['<a href="docs/a.html">', []],
    ['<a href="https://example.com/">', []],
    ['<a href="/docs/missing">', ['x.html: /docs/missing leads nowhere']],
    ['<a href="/docs/a#c">', ['x.html: /docs/a#c: the page has no such anchor']],
    ['<img alt="" src="/no.png">', ['x.html: /no.png leads nowhere']],
    [
      '<script src="https://cdn.example.com/a.js">',
      ['x.html: loads https://cdn.example.com/a.js from elsewhere'],
    ],
    [
      '<link href="//fonts.example.com/a" rel="stylesheet">',
      ['x.html: loads //fonts.example.com/a from elsewhere'],
    ],
  ])('%s', (html, expected) => {
    expect(brokenLinks(site({ 'x.html': html }))).toEqual(expected)
  })

  test('A path without an ending is a page, and a folder is its index.', () => {
    const files = site({ 'lua/index.html': '' })
    expect(fileAt(files, '/docs/a')).toBe('docs/a.html')
    expect(fileAt(files, '/lua/')).toBe('lua/index.html')
    expect(fileAt(files, '/')).toBe('index.html')
    expect(fileAt(files, '/docs')).toBeUndefined()
  })

  test('The size of the first page is that of what it loads at once.', () => {
    const script = crypto.getRandomValues(new Uint8Array(5000)).join()
    const files = site({
      'index.html': '<script src="/a.js"></script><a href="/b.js">',
      'a.js': script,
      'b.js': script,
    })
    const size = firstPageSize(files)
    expect(size).toBeGreaterThan(5000)
    expect(size).toBeLessThan(15_000)
  })
})
