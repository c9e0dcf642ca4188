import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { defineConfig } from 'tsdown'
import { pageModule } from './cli/dashboard/bundle.ts'
import { withPlainInputs } from './tools/package/inputs.ts'

/** The entries of package.json: a new one also needs a line in its `exports` and in tools/size/limits.ts. */
const entries = {
  index: 'src/index.ts',
  client: 'src/client/client.ts',
  'better-auth': 'src/adapters/better-auth.ts',
  'express-rate-limit': 'src/adapters/express-rate-limit.ts',
  nest: 'src/adapters/nest.ts',
  lint: 'src/lint/lint.ts',
  limits: 'src/limits/limits.ts',
  rpc: 'src/rpc.ts',
  built: 'src/built/built.ts',
  'built/node': 'src/built/node.ts',
  'built/next': 'src/built/next.ts',
  'built/limits': 'src/built/limits.ts',
  'built/parser': 'src/built/parser.ts',
  features: 'src/features/index.ts',
  graphql: 'src/features/graphql/graphql.ts',
  outbound: 'src/outbound/index.ts',
  redis: 'src/stores/redis.ts',
  upstash: 'src/stores/upstash.ts',
  'durable-objects': 'src/stores/durable-objects/index.ts',
  node: 'src/hosts/node/node.ts',
  next: 'src/hosts/node/next.ts',
}

/** Entries that run in Node only. They contain the bridge, which is not published. */
const nodeEntries = {
  testing: 'src/testing/start.ts',
  cli: 'cli/main.ts',
}

/** The files with the code of features and of parts of the core. A bundler drops whole files, so each has one of its own, apart from its schemas. */
const features = Object.fromEntries(
  globSync(
    'src/{core/parts/*,features/{*/{index,stages},observe/{analytics,near-limit,otlp,reports,trace}}}.ts',
  ).map((file) => {
    const [, , folder, name] = file.split(/[/.]/)
    return [name === 'index' ? folder! : `${folder}-${name}`, file]
  }),
)

/** The two files of `#redis-url`, one of which each runtime loads (`imports` of package.json). */
const redisUrl = {
  'redis-url': 'src/stores/redis-url.ts',
  'no-redis-url': 'src/core/base/redis-url.ts',
}

/** Parts of `index` and of `features` that a bundler drops if a project does not use them: it drops whole files. */
const parts = {
  gateway: 'src/hosts/worker/gateway.ts',
  middleware: 'src/hosts/app/middleware.ts',
  ...features,
}

const honoLicense = readFileSync(new URL('node_modules/hono/LICENSE', import.meta.url), 'utf8')

const common = defineConfig({
  tsconfig: 'tsconfig.package.json',
  format: 'esm',
  fixedExtension: false,
  hash: false,
  sourcemap: 'hidden', // for npm run size; the package has none
  checks: { bundlerTimings: false },
  suppressWarnings: 'TypeScript 7.0 does not yet have a stable API',
})

/**
 * The types of Hono and of Workers are optional: without them, those of the middleware and of the entrypoint are `any`, and all others are
 * checked. An import for its effect has none on types, and a file without declarations is not needed.
 */
function withoutTypes() {
  for (const file of globSync('dist/{,built/,shared/}*.d.ts')) {
    const text = readFileSync(file, 'utf8')
      .replace(/^import "[^"]*";\n?/gm, '')
      .replace(/^import .* from "(hono|cloudflare:).*$/gm, '// @ts-ignore: without these types\n$&')
    if (text.trim() === '') rmSync(file)
    else writeFileSync(file, text)
  }
}

/** Removes the file of a feature that only exports the chunk with its code again, which other files import. */
function withoutCopies() {
  const textOf = (files: string[]) => files.map((file) => readFileSync(file, 'utf8')).join('')
  const beside = textOf(globSync('dist/*.js'))
  const below = textOf(globSync('dist/{built,shared}/*.js'))
  for (const name of Object.keys(features)) {
    if (!beside.includes(`"./${name}.js"`) && !below.includes(`"../${name}.js"`))
      rmSync(`dist/${name}.js`)
  }
}

const library = defineConfig({
  ...common,
  entry: { ...entries, ...redisUrl, ...parts },
  platform: 'neutral',
  target: 'es2022',
  dts: { entry: Object.values(entries) },
  plugins: [
    {
      name: 'redis-url',
      resolveId: (id, importer) =>
        importer && id.endsWith('/base/redis-url.ts')
          ? { id: '#redis-url', external: true }
          : undefined,
    },
    {
      name: 'plain-inputs',
      transform: {
        order: 'pre',
        filter: { id: /\.d\.ts$/ },
        handler: (code) => ({ code: withPlainInputs(code), map: null }),
      },
    },
  ],
  copy: [{ from: 'src/api/openapi.json', to: 'dist' }],
  hooks: {
    'build:done'() {
      withoutTypes()
      withoutCopies()
    },
  },
  // The gateway routes with Hono. It is bundled, so that a Worker without Hono needs no other package.
  deps: {
    alwaysBundle: ['hono/tiny'],
    onlyBundle: ['hono'],
    neverBundle: ['cloudflare:workers'],
    dts: { neverBundle: [/^hono/, 'cloudflare:workers'] },
  },
  outputOptions: {
    // In a folder of their own, so that none takes the name of an entry.
    chunkFileNames: 'shared/[name].js',
    codeSplitting: { groups: [{ name: 'hono', test: /node_modules\/hono\/.*\.js$/ }] },
  },
  banner: ({ fileName }) =>
    fileName === 'shared/hono.js' ? `/* hono\n\n${honoLicense}*/` : undefined,
})

const forNode = defineConfig({
  ...common,
  entry: nodeEntries,
  platform: 'node',
  target: 'node20',
  plugins: [
    {
      // The page of the dashboard as text, so that the package needs no bundler.
      name: 'dashboard-page',
      load: (id) => (id.endsWith('/cli/dashboard/page-files.ts') ? pageModule() : undefined),
    },
    {
      // Without the modules for JSON, search and others, which the bridge does not use.
      name: 'redis-client',
      resolveId: (id) => (id === 'redis' ? { id: '@redis/client', external: true } : undefined),
    },
  ],
  clean: false,
  dts: { entry: [nodeEntries.testing] },
  // AsyncDisposable, for projects with neither this library nor @types/node.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  deps: {
    alwaysBundle: ['sluice-upstash-bridge', 'redis'], // the plugin above replaces it
    neverBundle: ['wrangler', 'miniflare', 'esbuild', 'vitest'],
  },
  // In a folder of their own, because both builds have chunks with the same names.
  outputOptions: { chunkFileNames: 'node/[name].js' },
  // The bridge reads these scripts when it starts.
  copy: [{ from: 'packages/upstash-bridge/src/guard', to: 'dist/node' }],
})

/** The published package: ES modules and their declarations, in dist. */
export default [library, forNode]
