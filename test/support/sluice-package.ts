/** The package `sluice` of the tests of its commands. The global setup builds it. */
import { cp, glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { pageModule } from '../../cli/dashboard/bundle.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The built package. In node_modules, so that `sluice dev` does not watch it. */
export const packageFolder = join(root, 'node_modules/.cache/sluice-package')

/** Bundles the command and the library. */
export async function buildPackage(): Promise<void> {
  const outdir = join(packageFolder, 'dist')
  const bundled = { bundle: true, format: 'esm' } as const
  await build({
    ...bundled,
    entryPoints: { cli: join(root, 'cli/main.ts') },
    outdir,
    platform: 'node',
    target: 'node20',
    splitting: true,
    external: ['wrangler', 'miniflare', 'esbuild'],
    plugins: [
      {
        // As in tsdown.config.ts.
        name: 'dashboard-page',
        setup(build) {
          build.onLoad({ filter: /\/dashboard\/page-files\.ts$/ }, async () => ({
            contents: await pageModule(),
            loader: 'js',
          }))
        },
      },
    ],
    banner: {
      js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);",
    },
  })
  await build({
    ...bundled,
    entryPoints: {
      index: join(root, 'src/index.ts'),
      features: join(root, 'src/features/index.ts'),
      'durable-objects': join(root, 'src/stores/durable-objects/index.ts'),
      rpc: join(root, 'src/rpc.ts'),
      built: join(root, 'src/built/built.ts'),
    },
    external: ['cloudflare:workers'],
    outdir,
    splitting: true,
    target: 'es2022',
  })
  // As in the package: a list of all features is no reason to keep them. A bundler drops the list that nothing uses.
  const made = '(all) => { const list = {}; __export(list, all); return list }'
  for await (const file of glob(join(outdir, '*.js'))) {
    const text = await readFile(file, 'utf8')
    const pure = `var $1 = /* @__PURE__ */ (${made})(`
    await writeFile(file, text.replace(/^var (\w+) = \{\};\n__export\(\1, /gm, pure))
  }
  await cp(join(root, 'packages/upstash-bridge/src/guard'), join(outdir, 'guard'), {
    recursive: true,
  })
  const exports = {
    '.': './dist/index.js',
    './features': './dist/features.js',
    './durable-objects': './dist/durable-objects.js',
    './rpc': './dist/rpc.js',
    './built': './dist/built.js',
  }
  const manifest = { name: 'sluice', type: 'module', sideEffects: false, exports }
  await writeFile(join(packageFolder, 'package.json'), JSON.stringify(manifest))
}
