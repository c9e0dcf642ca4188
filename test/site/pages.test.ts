/** The pages of the site, and the checks of its links, without a build. */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { examples } from '../../site/playground/scenarios.ts'
import { brokenLinks, fileAt, firstPageSize, wordsOf } from '../../tools/site/check.ts'
import {
  descriptionOf,
  pagePaths,
  preparePages,
  type SidebarItem,
  type SiteFiles,
  sidebar,
} from '../../tools/site/pages.ts'
import { type Block, blocksOf, pageAt, pages, read, sectionOf } from '../support/pages.ts'

const prepared = preparePages()
const textOf = (path: string) => prepared.get(path) as string

describe('a page of the repository on the site', () => {
  test('A link to a README is a link to its folder, and that of the repository to the first page.', () => {
    expect(textOf('index.md')).toContain('](/docs/)')
    expect(prepared.has('docs/index.md')).toBe(true)
    expect(textOf('docs/guides/hono-app.md')).toContain('](/docs/tutorial#')
  })

  test('The index ends before the pages for contributors.', () => {
    expect(textOf('docs/index.md')).toContain('](/docs/glossary)')
    expect(textOf('docs/index.md')).not.toContain('CONTRIBUTING')
  })

  test('A link to a source file leads to its text on the site.', () => {
    const file = 'examples/middleware.ts'
    expect(textOf('docs/guides/hono-app.md')).toContain(`](/source/${file}.txt)`)
    expect(prepared.get(`public/source/${file}.txt`)).toBe(read(file))
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

const linksOf = (items: SidebarItem[]): string[] =>
  items.flatMap(({ link, items = [] }) => [...(link ? [link] : []), ...linksOf(items)])

describe('the sidebar', () => {
  const groups = sidebar()
  const paths = [...prepared.keys()]
    .filter((path) => path.endsWith('.md'))
    .map((path) => `/${path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`)

  test('It has each page of the site once, apart from the first page and the index.', () => {
    expect(linksOf(groups).sort()).toEqual(
      paths.filter((path) => !/^\/(docs\/)?$/.test(path)).sort(),
    )
  })

  test('It shows at most 30 links, whichever group is open.', () => {
    const [start, ...others] = groups
    expect(start!.collapsed).toBe(false)
    expect(others.every(({ collapsed }) => collapsed)).toBe(true)
    const most = Math.max(...others.map((group) => linksOf([group]).length))
    expect(linksOf([start!]).length + most).toBeLessThanOrEqual(30)
  })

  test('It has no page for contributors.', () => {
    const ours = /^(lua|test|tools|CONTRIBUTING|docs\/architecture|docs\/contribute)/
    expect(pagePaths().filter((path) => ours.test(path))).toEqual([])
  })
})

test('Each block of code on the first page is a part of one that a test runs.', () => {
  const home = { path: 'site/home.md', text: read('site/home.md') }
  const bare = ({ code }: Block) => code.replace(/\s+/g, '').replace(/,(?=[\])}])/g, '')
  const known = pages.flatMap(blocksOf).map(bare)
  const shown = blocksOf(home).map(bare)
  expect(shown.length).toBe(3)
  const unknown = shown.filter((code) => !known.some((block) => block.includes(code)))
  expect(unknown).toEqual([])
})

test('A picture with one for the dark scheme beside it is shown in the scheme of the reader.', async () => {
  const { followScheme } = await import(`${'../../site/.vitepress/'}pictures.mjs`)
  const image = ([token]: Map<string, string>[]) => JSON.stringify([...token!.values()])
  const rules = { image }
  followScheme({ renderer: { rules } })
  const shown = (src: string) => {
    const attributes = new Map([['src', src]])
    const token = Object.assign(attributes, {
      attrGet: (name: string) => attributes.get(name),
      attrSet: (name: string, value: string) => attributes.set(name, value),
    })
    const env = { path: fileURLToPath(new URL('../../docs/playground.md', import.meta.url)) }
    return Reflect.apply(rules.image, undefined, [[token], 0, {}, env])
  }
  expect(shown('./playground.png')).toBe(
    '["./playground.png","in-light"]["./playground-dark.png","in-dark"]',
  )
  expect(shown('./other.png')).toBe('["./other.png"]')
  expect(shown('./concepts.svg')).toBe('["./concepts.svg"]')
})

test('A page says when it was last changed.', () => {
  expect(textOf('docs/concepts.md')).toMatch(/^lastUpdated: 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d/m)
})

test('Each page has a description of its own.', () => {
  const all = [...prepared].flatMap(([path, text]) =>
    path.endsWith('.md') ? [String(text).match(/^description: (.*)$/m)?.[1] ?? path] : [],
  )
  expect(new Set(all).size).toBe(all.length)
  expect(all.filter((text) => text.length < 30 || text.length > 260)).toEqual([])
})

test('A description is the first sentences of a page, without marks.', () => {
  const long = 'It has many words. '.repeat(20)
  expect(descriptionOf(`# A\n\n\`a\` is [one](b.md) **thing**. ${long}`)).toMatch(
    /^a is one thing\. It has many words\.( It has many words\.)*$/,
  )
  expect(descriptionOf('# A\n\n```ts\nA\n```\n\nThe text:')).toBe('The text.')
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

  test('The words of a page are those of its article: marks within a word end none.', () => {
    const article = '<nav>a b</nav><main>One <b>two</b><p>th<em>ree</em></p><svg>x</svg></main>'
    expect(wordsOf(site({ 'x.html': article }))).toBe(3)
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
