/** What each page with a session takes for granted. */
import { blocksOf, pageAt, read } from '../../support/pages.ts'

export interface Setup {
  /** Neither package.json nor packages. */
  isEmpty?: true
  /** `npx sluice init` has written its files. */
  isInitialized?: true
  /** The text of each further file that exists. */
  files?: Record<string, string>
  /** The file for each named code block that the reader writes. */
  writes?: Record<string, string>
  /** Variables that the reader has set. */
  env?: Record<string, string>
  /** The ports of apps that the reader has started. */
  apps?: string[]
  /** The reader has set the variables of a database. */
  needsDatabase?: true
  /** The commands of earlier pages. */
  before?: string[]
}

const block = (page: string, at: number) =>
  blocksOf(pageAt(page)).filter(({ language }) => language === 'ts')[at]!.code

/** The configuration that `npm start` runs, in another project. */
const shipped = read('sluice.config.ts')
  .replace(/^import .*(@upstash|stores).*\n/gm, '')
  .replace(/ *\/\/ The database of .*\n.*\n/, '')
  .replace(/'\.\/src\/[^']*'/, "'sluice'")

export const setups: Record<string, Setup> = {
  'README.md': { isEmpty: true },
  'docs/tutorial.md': {
    isEmpty: true,
    writes: { tutorial: 'sluice.config.ts', production: '.env.production' },
  },
  'docs/guides/api-plans.md': { env: { KEY: 'alpha' } },
  'docs/guides/bun.md': { needsDatabase: true, writes: { 'bun-server': 'main.ts' } },
  'docs/guides/deno.md': { needsDatabase: true, writes: { 'deno-server': 'main.ts' } },
  'docs/guides/caddy.md': {
    files: { 'examples/caddy/Caddyfile': read('examples/caddy/Caddyfile') },
    apps: ['3000'],
    isInitialized: true,
    before: ['npx sluice dev'],
  },
  'docs/guides/nginx.md': {
    files: { 'examples/nginx/nginx.conf': read('examples/nginx/nginx.conf') },
  },
  'docs/guides/go-live.md': {},
  'docs/guides/hono-app.md': {
    writes: { 'hono-worker': 'src/index.ts' },
    files: {
      'wrangler.toml': 'name = "app"\nmain = "src/index.ts"\ncompatibility_date = "2026-01-01"\n',
    },
  },
  'docs/guides/limit-bots.md': { writes: { 'limit-bots': 'sluice.config.ts' } },
  'docs/guides/limit-graphql.md': { isEmpty: true },
  'docs/guides/near-limit-webhook.md': {},
  'docs/guides/node.md': {
    needsDatabase: true,
    files: {
      'server.ts': `import { createServer } from 'node:http'
${block('docs/guides/node.md', 1).replace("'1m'", "'1d'") /* A slow machine takes long for a hundred requests. */}
createServer((request, response) => limit(request, response, () => response.end())).listen(3000)
`,
    },
    before: ['node server.ts &'],
  },
  'docs/guides/other-libraries.md': {
    needsDatabase: true,
    files: {
      'server.js': `import express from 'express'
${block('docs/guides/other-libraries.md', 1).replace(/^(import .*\n)+/, '$&\nconst app = express()\n')}
app.get('/', (_, response) => response.send('Welcome.'))
app.listen(Number(process.env.PORT))
`,
    },
  },
  'docs/guides/redis-outage.md': { isInitialized: true },
  'docs/guides/test-policies.md': { files: { 'sluice.config.ts': shipped } },
  'docs/guides/troubleshooting.md': { files: { 'sluice.config.ts': shipped } },
  'docs/reference/cli.md': { files: { 'sluice.config.ts': shipped } },
  'docs/guides/verify.md': {
    files: {
      'sluice.config.ts': shipped.replace(
        'policies: [',
        "expect: { request: { path: '/login', method: 'POST' }, atMost: 10, in: '1m' },\n  policies: [",
      ),
    },
    apps: ['36161'],
    env: { ORIGIN: 'http://127.0.0.1:36161' },
    isInitialized: true,
  },
  'docs/guides/without-a-database.md': {},
}
