import { readFileSync } from 'node:fs'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'

// tools/site/build.ts writes the pages and the sidebar before it runs the generator.
const cache = new URL('../.cache/', import.meta.url)
const sidebar = JSON.parse(readFileSync(new URL('sidebar.json', cache), 'utf8'))

export default defineConfig({
  title: 'Sluice',
  description: 'A rate limiter for Cloudflare Workers, with one call to Redis for each decision.',
  lang: 'en',
  srcDir: '.cache/pages',
  outDir: 'dist',
  cacheDir: '.cache/vitepress',
  cleanUrls: true,
  // tools/site/check.ts checks every link of the built pages, with their anchors.
  ignoreDeadLinks: true,
  markdown: {
    // The anchors of GitHub, so that the links in the repository are those of the site.
    anchor: { slugify: slug, uniqueSlugStartIndex: 1 },
    toc: { slugify: slug },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial' },
      { text: 'Documentation', link: '/docs/' },
      { text: 'Playground', link: '/playground/', target: '_self' },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
