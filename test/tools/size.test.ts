import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { checkSizes, growth } from '../../tools/size/check.ts'
import { workerLimit } from '../../tools/size/limits.ts'
import { groupOf, sharesOf } from '../../tools/size/shares.ts'
import { treemap } from '../../tools/size/treemap.ts'

/** The first half of the line is from a module of src, the second half from a package. */
const script = {
  code: `${'export const a="'.padEnd(40, 'xyz')}";export const b=1;`,
  map: JSON.stringify({
    version: 3,
    sources: ['../../src/core/base/ip.ts', '../../node_modules/@upstash/redis/chunk.mjs'],
    names: [],
    mappings: 'AAAA,yCCAA',
  }),
}

test('The share of a part is what the bundle loses without it.', () => {
  const shares = sharesOf(script)
  expect(shares.map(({ name }) => name).sort()).toEqual([
    '@upstash/redis/chunk.mjs',
    'src/core/base/ip.ts',
  ])
  expect(shares.every(({ gzip }) => gzip > 0)).toBe(true)
})

test.each([
  ['src/core/base/ip.ts', 'src/core/base'],
  ['@upstash/redis/chunk.mjs', '@upstash/redis'],
  ['jose/dist/webapi/lib/key.js', 'jose'],
])('The module %s belongs to %s.', (name, group) => {
  expect(groupOf(name)).toBe(group)
})

test('The check names the parts that have grown since the record, the largest growth first.', () => {
  const shares = [
    { name: 'src/core/base', gzip: 3000 },
    { name: 'jose', gzip: 6000 },
    { name: 'hono', gzip: 5050 },
  ]
  expect(growth(shares, { 'src/core/base': 2500, hono: 5000 })).toEqual([
    'jose +5.9 KiB',
    'src/core/base +0.5 KiB',
  ])
})

test('The treemap has a box for each module.', () => {
  const svg = treemap(sharesOf(script))
  expect(svg.match(/<rect/g)).toHaveLength(2)
})

test('The Worker is within its limit, compressed.', async () => {
  expect((await checkSizes([workerLimit])).problems).toEqual([])
})

const source = (path: string) =>
  fileURLToPath(new URL(`../../src/features/${path}`, import.meta.url))
const folders = [...readFileSync(source('index.ts'), 'utf8').matchAll(/'\.\/(.*)\/index\.ts'/g)]
const named = folders.map(([, folder]): [feature: string, folder: string] => [
  folder!.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
  folder!,
])

/** The modules of the bundle of a project that uses one feature, and its length in characters. */
async function bundled(feature: string, file: string) {
  const code = `import { ${feature} } from '${source(file)}'\nconsole.log(${feature})`
  const bundle = await rolldown({
    input: 'project',
    platform: 'neutral',
    resolve: { mainFields: ['module', 'main'] },
    logLevel: 'silent',
    plugins: [
      {
        name: 'project',
        resolveId: (id) => (id === 'project' ? '\0project' : undefined),
        load: (id) => (id === '\0project' ? code : undefined),
      },
    ],
  })
  const { output } = await bundle.generate({ minify: true, codeSplitting: false })
  const [{ modules, code: text }] = output
  const kept = Object.entries(modules).filter(([, { renderedLength }]) => renderedLength > 0)
  return { modules: kept.map(([id]) => id).sort(), length: text.length }
}

test.each(named)(
  'A bundle with %s of sluice/features has no more than one with its own file.',
  async (feature, folder) => {
    const [ofAll, own] = [
      await bundled(feature, 'index.ts'),
      await bundled(feature, `${folder}/index.ts`),
    ]
    expect(ofAll.modules).toEqual(own.modules)
    // The minifier gives other names to the same code, and a few are longer.
    expect(Math.abs(ofAll.length - own.length)).toBeLessThan(Math.max(30, own.length / 1000))
  },
)
