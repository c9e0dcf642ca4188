/** Measures what a limiter adds to a Worker: KiB of its code, minified and compressed (gzip). */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { writeBuilt } from '../../../../cli/build.ts'
import { gatewayFiles, WORKER } from '../../../../cli/init/templates.ts'
import { hostOf } from '../../../../cli/project/hosts.ts'
import { bundled, readModules } from '../../../build.ts'
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
}

/** Code of which there is no variant. */
export interface Wholes {
  /** The Worker of this repository. */
  own: number
  /** The Worker of `sluice init`. */
  ofInit: number
  /** The library, for a configuration that counts nothing locally. */
  withoutLocal: number
}

const src = (file: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../../../src/${file}`, import.meta.url)))

const contenders: { id: VariantId; name: string; code: string }[] = [
  {
    id: 'ours',
    name: 'Sluice',
    code: `export { built, denialCache, local, rateLimiter } from ${src('built/built.ts')}`,
  },
  {
    id: 'ours-unbuilt',
    name: 'Sluice, not built',
    code: `export { rateLimiter } from ${src('index.ts')}`,
  },
  {
    id: 'ours-limits',
    name: 'Sluice, limits by name and key',
    code: `export { built, denialCache, limits, local } from ${src('built/limits.ts')}`,
  },
  {
    id: 'ours-limits-unbuilt',
    name: 'Sluice, limits by name and key, not built',
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
    })
  }
  return sizes
}

export const measureWholes = async (): Promise<Wholes> => ({
  own: gzipSync((await bundleOf()).code).length / KIB,
  ofInit: gzipSync(await workerOfInit()).length / KIB,
  withoutLocal:
    (await libraryBytes(
      `export { built, denialCache, rateLimiter } from ${src('built/built.ts')}`,
    )) / KIB,
})

/** The Worker that `sluice init` writes, built and bundled as for a deployment. */
async function workerOfInit(): Promise<string> {
  // In this repository, where the files find the packages.
  const folder = fileURLToPath(new URL('../../../../.cache/bench-init/', import.meta.url))
  const files = gatewayFiles('bench', false)
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, 'src'), { recursive: true })
  for (const name of ['sluice.config.ts', WORKER]) await writeFile(join(folder, name), files[name]!)
  const config = join(folder, 'sluice.config.ts')
  await writeBuilt(config, await hostOf(config))
  const { modules } = await bundled(join('.cache/bench-init', WORKER), true)
  return Object.values(modules)[0]!.contents
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
