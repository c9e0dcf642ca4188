/**
 * Every feature that a page names exists, and every feature that a guide names as absent does not. A guide lists what it names in a
 * comment: `<!-- has: sluice/node, refusal; lacks: sluice/websockets -->`. An entry of the list is an entry of the package, a command
 * (`npx sluice replay`), a function that the package exports (`createSluice()`), or a field of a configuration or a policy.
 */
import { expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import { blocksOf, found, pageAt, pages, read, root } from '../support/pages.ts'

const manifest: { exports: object; scripts: object } = JSON.parse(read('package.json'))
const entries = Object.keys(manifest.exports).map((path) => path.replace('.', 'sluice'))

/** The source of each entry, as the build names it. */
const sources = new Map(
  [...read('tsdown.config.ts').matchAll(/^ {2}'?([\w-]+)'?: '(\S+\.ts)'/gm)].map(
    ([, name, file]) => [name === 'index' ? 'sluice' : `sluice/${name}`, file!],
  ),
)
/** `sluice/rpc` runs only in workerd. */
const exported = async (entry: string): Promise<string[]> =>
  entry === 'sluice/rpc' ? ['RateLimit'] : Object.keys(await import(root + sources.get(entry)!))

const guides = pages.filter(({ path }) => !/CHANGELOG|^bench|api\.md/.test(path))
const names = (pattern: RegExp) =>
  guides.flatMap(({ path, text }) => found(text, pattern).map((name) => [path, name] as const))

test('Every entry of the package that a page names exists.', () => {
  const named = names(/['`](sluice\/[a-z][a-z-]*(?:\.json)?)['`]/g)
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(([, name]) => !entries.includes(name))).toEqual([])
})

test('Every command and npm script that a page names exists.', () => {
  const named = names(/npx sluice ([a-z]+)/g)
  const known = commands.map(({ name }) => name)
  expect(named.filter(([, name]) => !known.includes(name))).toEqual([])
  const scripts = Object.keys(manifest.scripts)
  // A project that `sluice init` writes has a script `dev`.
  const run = names(/npm run ([a-z][a-z:]*)/g).filter(([, name]) => name !== 'dev')
  expect(run.filter(([, name]) => !scripts.includes(name))).toEqual([])
})

const imports = guides.flatMap((page) =>
  blocksOf(page).flatMap(({ code }) =>
    [...code.matchAll(/^ *import \{([^}]*)\} from '(sluice(?:\/[a-z-]+)?)'/gm)].flatMap(
      ([, list, entry]) =>
        list!
          .split(',')
          .map((name) => name.trim().split(' as ')[0]!)
          .filter((name) => name && !name.startsWith('type '))
          .map((name) => ({ page: page.path, entry: entry!, name })),
    ),
  ),
)

test('Every function that an example imports is one that its entry exports.', async () => {
  expect(imports.length).toBeGreaterThan(40)
  const all = [...new Set(imports.map(({ entry }) => entry))]
  const known = new Map(
    await Promise.all(all.map(async (entry) => [entry, await exported(entry)] as const)),
  )
  expect(imports.filter(({ entry, name }) => !known.get(entry)!.includes(name))).toEqual([])
})

/** The fields of a configuration and of a policy, with a section or a row of their own. */
const fields = new Set(
  found(
    ['configuration', 'policies'].map((name) => pageAt(`docs/reference/${name}.md`).text).join(),
    /<a id="(?:policy-)?([\w-]+)"/g,
  ),
)

async function exists(feature: string): Promise<boolean> {
  if (feature.startsWith('sluice/')) return entries.includes(feature)
  if (feature.startsWith('npx sluice ')) {
    return commands.some(({ name }) => `npx sluice ${name}` === feature)
  }
  if (feature.endsWith('()')) {
    const all = await Promise.all(entries.filter((one) => sources.has(one)).map(exported))
    return all.flat().includes(feature.slice(0, -2))
  }
  return fields.has(feature)
}

/** The list of a guide. */
const listOf = (text: string, kind: string) =>
  found(text, new RegExp(`<!--[^>]*\\b${kind}: ([^;>]*?)(?:;| -->)`, 'g'))
    .flatMap((list) => list.split(','))
    .map((name) => name.trim())
    .filter(Boolean)

const listed = pages.filter(({ text }) => /<!-- (has|lacks): /.test(text))

test('Each guide about another limiter lists what it names as present and as absent.', () => {
  const about = pages.filter(({ path }) => /migrate-from|choose-a/.test(path))
  expect(about.length).toBeGreaterThan(3)
  expect(about.filter((page) => !listed.includes(page)).map(({ path }) => path)).toEqual([])
})

test.each(listed.map(({ path, text }) => [path, text] as const))(
  'The features that %s lists are present and absent as it says.',
  async (_, text) => {
    const has = listOf(text, 'has')
    const lacks = listOf(text, 'lacks')
    expect(has.length + lacks.length).toBeGreaterThan(0)
    const missing: string[] = []
    for (const name of has) if (!(await exists(name))) missing.push(name)
    expect({ missing }).toEqual({ missing: [] })
    const present: string[] = []
    for (const name of lacks) if (await exists(name)) present.push(name)
    expect({ present }).toEqual({ present: [] })
  },
)

/** A duration of a measurement, a size of a bundle, or a multiple of a measured base. Prices and counts of commands follow from the code. */
const MEASURED = /\d µs|\bp50\b[^|.]*\d ms|\d (?:KiB|MiB)\b|\d times a Worker|\d+\.\d+ billed/

test.each(['README.md', 'docs/explanation/cost.md', 'docs/explanation/choose-a-limiter.md'])(
  'Every measured figure on %s is between the markers of a command that writes it.',
  (path) => {
    const prose = pageAt(path).text.replace(/<!-- ([a-z]+) -->.*?<!-- \/\1 -->/gs, '')
    expect(prose.split('\n').filter((line) => MEASURED.test(line))).toEqual([])
  },
)
