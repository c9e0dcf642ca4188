/** Measures what a limiter adds to a Worker: KiB of its code, minified and compressed (gzip). */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { readModules } from '../../../build.ts'
import { bundleOf } from '../../../size/bundle.ts'
import type { VariantId } from '../variants.ts'
import type { Workers } from '../workers.ts'

export interface Size {
  id: VariantId
  name: string
  /** The limiter as a project imports it, with its Redis client and without Hono. */
  library: number
  /** The Worker of this benchmark that uses it. */
  worker: number
  /** The whole Worker that Sluice deploys. */
  whole?: number
}

const src = (file: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../../../src/${file}`, import.meta.url)))

const contenders: { id: VariantId; name: string; code: string }[] = [
  { id: 'ours', name: 'Sluice', code: `export { rateLimiter } from ${src('index.ts')}` },
  {
    id: 'ours-limits',
    name: 'Sluice, limits by name and key',
    code: `export { limits } from ${src('limits/limits.ts')}`,
  },
  {
    id: 'upstash-sliding',
    name: '@upstash/ratelimit',
    code: `export { Ratelimit } from '@upstash/ratelimit'
      export { Redis } from '@upstash/redis/cloudflare'`,
  },
  {
    id: 'hono',
    name: 'hono-rate-limiter',
    code: `export { rateLimiter, RedisStore } from 'hono-rate-limiter'
      export { Redis } from '@upstash/redis/cloudflare'`,
  },
]

const KIB = 1024

export async function measureSizes(workers: Workers): Promise<Size[]> {
  const sizes: Size[] = []
  for (const { id, name, code } of contenders) {
    const { modules } = await readModules(workers.outdir(id))
    const texts = Object.values(modules).map(({ contents }) => contents)
    sizes.push({
      id,
      name,
      library: (await libraryBytes(code)) / KIB,
      worker: gzipSync(texts.join('')).length / KIB,
      ...(id === 'ours' && { whole: gzipSync((await bundleOf()).code).length / KIB }),
    })
  }
  return sizes
}

/** Bundles a module as a build for Workers does, without Hono. */
async function libraryBytes(code: string): Promise<number> {
  const bundle = await rolldown({
    input: 'entry',
    external: [/^node:/, /^hono($|\/)/],
    platform: 'neutral',
    resolve: {
      conditionNames: ['workerd', 'worker', 'browser', 'import', 'default'],
      mainFields: ['module', 'main'],
    },
    logLevel: 'silent',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === 'entry' ? '\0entry' : undefined),
        load: (id) => (id === '\0entry' ? code : undefined),
      },
    ],
  })
  const { output } = await bundle.generate({ minify: true, codeSplitting: false })
  await bundle.close()
  return gzipSync(output[0].code).length
}
