import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { placeOf } from '../../cli/project/place.ts'
import { type ConfigFolder, configFolder } from '../support/dev-command.ts'

let configs: ConfigFolder
beforeAll(async () => {
  configs = await configFolder()
})
afterAll(() => configs.remove())

/** The line and column of a setting, and the text there. */
async function found(text: string, path: string) {
  const file = join(configs.folder, 'place.ts')
  await writeFile(file, text)
  const [, place = ''] = placeOf(file, path).split(/\.ts:?/)
  const [line, column] = place.split(':').map(Number)
  return line ? text.split('\n')[line - 1]!.slice(column! - 1) : undefined
}

const CONFIG = `// export default { policies: 1 }
import { defineConfig } from 'sluice'
const window = '1m' /* , { */
const shared: object = { name: 'shared', limit: 0 }
export default defineConfig<Env>({
  origin: 'zone', // policies: [
  'use': [observe({ webhook: { url: 'x' } })],
  policies: [
    { name: 'a, {', limit: 1, window },
    shared,
    {
      name: 'b', match: { path: /[,{/]/, header: { 'x-a': "it's", 'x.b': \`, }\` } },
      key: (c) => c.get('user', { a: [1] }), window: '1x' },
  ],
})
`
test.each([
  ['', '{\n'.trim()],
  ['origin', "origin: 'zone'"],
  ['use[0].webhook.url', "url: 'x'"],
  ['policies', 'policies: ['],
  ['policies[0]', "{ name: 'a, {'"],
  ['policies[0].window', 'window }'],
  ['policies[0].burst', "{ name: 'a, {'"],
  ['policies[1].limit', 'limit: 0'],
  ['policies[2].match.header["x.b"]', "'x.b': "],
  ['policies[2].match.header.x-a', "'x-a': "],
  ['policies[2].window', "window: '1x'"],
  ['policies[9].window', 'policies: ['],
  ['expect[0]', '{'],
])('The setting %j is found where it is written.', async (path, start) => {
  expect((await found(CONFIG, path))?.startsWith(start)).toBe(true)
})

test.each([
  ['a file of another kind', '{ "policies": [] }'],
  ['no file', ''],
  [
    'a configuration that another file makes',
    "import config from './other'\nexport default config",
  ],
  ['a constant that needs itself', 'const a = a\nexport default a'],
])('Without an object in the file the file is the place: %s.', async (_, text) => {
  expect(await found(text, 'policies[0].name')).toBeUndefined()
})

test('After a spread an entry of a list has no known index.', async () => {
  const text = 'export default { policies: [...more, { limit: 1 }] }'
  expect(await found(text, 'policies[1].limit')).toMatch(/^policies: /)
})

test('Each setting of any object is found, whatever its texts contain.', async () => {
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: 'grapheme-ascii' }),
      fc.integer(),
      fc.dictionary(fc.stringMatching(/^[a-z]\w{0,5}$/), tie('tree'), { maxKeys: 4 }),
      fc.array(tie('tree'), { maxLength: 4 }),
    ),
  }))
  const paths = (value: unknown, at = ''): string[] => [
    at,
    ...Object.entries(Object(typeof value === 'object' ? value : {})).flatMap(([name, inner]) =>
      paths(inner, Array.isArray(value) ? `${at}[${name}]` : at ? `${at}.${name}` : name),
    ),
  ]
  const config = fc.dictionary(fc.stringMatching(/^[a-z]\w{0,5}$/), tree, { minKeys: 1 })
  await fc.assert(
    fc.asyncProperty(config, fc.nat(), fc.constantFrom(0, 2), async (value, at, indent) => {
      const all = paths(value)
      const path = all[at % all.length]!
      const text = `export default ${JSON.stringify(value, null, indent)}`
      const place = await found(text, path)
      const name = /(\w+)$/.exec(path)?.[1]
      if (name) expect(place).toMatch(new RegExp(`^"${name}":`))
      else expect(place).toBeDefined()
    }),
    { numRuns: 200 },
  )
})
