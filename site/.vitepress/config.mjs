import { readFileSync } from 'node:fs'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'
import llms from 'vitepress-plugin-llms'
import { markCommands } from './commands.mjs'
import { followScheme } from './pictures.mjs'

// tools/site/build.ts writes the pages and this file before it runs the generator.
const { sidebar, site, repository, version } = JSON.parse(
  readFileSync(new URL('../.cache/site.json', import.meta.url), 'utf8'),
)
const description =
  'Rate limits for apps, jobs and sites, counted in Upstash Redis or Durable Objects.'

/** The cells of a table name their column, because a narrow screen shows a row as a list. An empty heading is no heading. */
function nameCells(md) {
  md.core.ruler.push('name-cells', ({ tokens }) => {
    let names = []
    let column = 0
    for (const [index, token] of tokens.entries()) {
      if (token.type === 'table_open') names = []
      if (token.type === 'tr_open') column = 0
      if (token.type === 'th_open') {
        names.push(tokens[index + 1].content.replaceAll('`', ''))
        if (names.at(-1) === '') token.tag = tokens[index + 2].tag = 'td'
      }
      if (token.type === 'td_open') token.attrSet('data-column', names[column++] ?? '')
    }
  })
}

/** Words that readers search for, and the words of the pages. The function is sent as text, so that it reads nothing outside. */
const searchTerms = (word) => {
  const synonyms = {
    pricing: ['cost', 'bill'],
    price: ['cost', 'bill'],
    whitelist: ['allow', 'exempt'],
    allowlist: ['allow', 'exempt'],
    blacklist: ['deny'],
    blocklist: ['deny'],
    timeout: ['deadline'],
    signin: ['login'],
    throttling: ['limit', 'throttle'],
    captcha: ['bot'],
    crash: ['outage'],
    down: ['outage'],
    unblock: ['unban'],
  }
  const term = word.toLowerCase()
  return [term, ...(Object.hasOwn(synonyms, term) ? synonyms[term] : [])]
}

/** Guides come before the reference. */
const boostDocument = (id) => (/\/docs\/(guides\/|concepts|tutorial)/.test(id) ? 2 : 1)

export default defineConfig({
  title: 'Sluice',
  description,
  lang: 'en',
  srcDir: '.cache/pages',
  outDir: 'dist',
  cacheDir: '.cache/vitepress',
  cleanUrls: true,
  // The first page would load the pages of all its links.
  router: { prefetchLinks: false },
  // tools/site/check.ts checks every link of the built pages, with their anchors.
  ignoreDeadLinks: true,
  sitemap: site ? { hostname: site } : undefined,
  head: [
    ['link', { rel: 'icon', href: '/favicon.svg', type: 'image/svg+xml' }],
    ['link', { rel: 'icon', href: '/favicon.ico', sizes: '32x32' }],
  ],
  transformHead({ pageData, title, description }) {
    const path = `/${pageData.relativePath}`.replace(/(index)?\.md$/, '')
    const card = {
      'og:type': 'website',
      'og:site_name': 'Sluice',
      'og:title': title,
      'og:description': description,
      ...(site && { 'og:url': site + path, 'og:image': `${site}/card.png` }),
    }
    return [
      ...Object.entries(card).map(([property, content]) => ['meta', { property, content }]),
      ['meta', { name: 'twitter:card', content: 'summary_large_image' }],
      ...(site ? [['link', { rel: 'canonical', href: site + path }]] : []),
    ]
  },
  markdown: {
    // The anchors of GitHub, so that the links in the repository are those of the site.
    anchor: { slugify: slug, uniqueSlugStartIndex: 1 },
    toc: { slugify: slug },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    codeTransformers: [markCommands],
    // A picture that is not shown is not loaded.
    image: { lazyLoading: true },
    config(md) {
      nameCells(md)
      followScheme(md)
    },
  },
  vite: { plugins: [llms({ domain: site || undefined, excludeIndexPage: false })] },
  themeConfig: {
    nav: [
      { text: 'Guides', link: '/docs/', activeMatch: '^/docs/($|guides/|tutorial|concepts)' },
      {
        text: 'Reference',
        link: '/docs/reference/configuration',
        activeMatch: '^/docs/reference/',
      },
      {
        text: 'Playground',
        link: '/playground/',
        target: '_self',
        activeMatch: '^/docs/playground',
      },
      { text: `v${version}`, link: '/CHANGELOG' },
    ],
    sidebar,
    outline: [2, 3],
    lastUpdated: { formatOptions: { dateStyle: 'long', forceLocale: true } },
    ...(repository && {
      editLink: { pattern: ({ frontmatter }) => frontmatter.edit, text: 'Edit this page' },
      socialLinks: [{ icon: 'github', link: repository }],
    }),
    search: {
      provider: 'local',
      options: { miniSearch: { searchOptions: { processTerm: searchTerms, boostDocument } } },
    },
  },
})
