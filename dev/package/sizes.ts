import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'

/** A part of the package that a project imports, and its maximum size in KiB. */
interface SizeLimit {
  name: string
  /** A file of dist. */
  file: string
  /** Defaults to all exports. */
  exports?: string
  maxKiB: number
}

const limits: SizeLimit[] = [
  { name: 'rateLimiter of sluice', file: 'index.js', exports: 'rateLimiter', maxKiB: 74 },
  { name: 'createGateway of sluice', file: 'index.js', exports: 'createGateway', maxKiB: 85 },
  { name: 'sluice/node', file: 'node.js', maxKiB: 76 },
  { name: 'sluice/next', file: 'next.js', maxKiB: 75 },
  { name: 'sluice/client', file: 'client.js', maxKiB: 3 },
  { name: 'sluice/lint', file: 'lint.js', maxKiB: 21 },
]

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))

/** The size in bytes of a part in a Worker: minified and compressed, with its dependencies, without Hono. */
export async function sizeOf(file: string, exports = '*'): Promise<number> {
  const names = exports === '*' ? '*' : `{ ${exports} }`
  const bundle = await rolldown({
    input: 'entry',
    external: [/^node:/, /^hono/, /\/dist\/hono\.js$/],
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
        load: (id) => (id === '\0entry' ? `export ${names} from '${dist}${file}'` : undefined),
      },
    ],
  })
  const { output } = await bundle.generate({ minify: true, codeSplitting: false })
  await bundle.close()
  const missing = output[0].imports.filter((id) => !/^node:|hono/.test(id))
  if (missing.length > 0) throw new Error(`The size leaves out ${missing.join(', ')}.`)
  return gzipSync(output[0].code, { level: 9 }).length
}

/** The sizes of all parts as text, and one line for each that is too large. */
export async function checkSizes(): Promise<{ sizes: string[]; problems: string[] }> {
  const sizes: string[] = []
  const problems: string[] = []
  for (const { name, file, exports, maxKiB } of limits) {
    const kiB = (await sizeOf(file, exports)) / 1024
    sizes.push(`${name} ${kiB.toFixed(1)} of ${maxKiB} KiB`)
    if (kiB > maxKiB) {
      problems.push(
        `${name} has ${kiB.toFixed(1)} KiB, minified and compressed; the limit in dev/package/sizes.ts is ${maxKiB} KiB.`,
      )
    }
  }
  return { sizes, problems }
}
