import { existsSync, readdirSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path/posix'
import { readEntries } from './manifest.ts'

const root = new URL('../../', import.meta.url)

/** The scripts that the bridge reads when it starts. */
const guard = new URL('packages/upstash-bridge/src/guard', root)

/** Files of the package that are no modules. */
const documents = [
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'llms.txt', 'package.json', 'dist/openapi.json'],
  // Without those for contributors, and without the playground, which is a page of the site.
  ...readdirSync(new URL('docs', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(?!architecture|playground|contribute).*\.md$/.test(name))
    .map((name) => `docs/${name}`),
]

const IMPORT = /(?:from|import\(?) ?["'](\.{1,2}\/[\w./-]+)\.js["']/g

/** The files that the package must contain: documents, entries, and what entries import. */
export async function expectedFiles(): Promise<Set<string>> {
  const files = new Set(documents)
  const add = async (path: string) => {
    if (files.has(path)) return
    files.add(path)
    const text = await readFile(new URL(path, root), 'utf8')
    const isDeclaration = path.endsWith('.d.ts')
    for (const [, name] of text.matchAll(IMPORT)) {
      const file = join(dirname(path), `${name}.${isDeclaration ? 'd.ts' : 'js'}`)
      // sluice/testing has the text of a module that imports others.
      if (existsSync(new URL(file, root))) await add(file)
    }
  }
  for (const name of (await readEntries()).values()) {
    await add(`dist/${name}.js`)
    await add(`dist/${name}.d.ts`)
  }
  for (const name of ['redis-url', 'no-redis-url']) await add(`dist/${name}.js`)
  await add('dist/cli.js')
  for (const name of await readdir(guard)) files.add(`dist/node/guard/${name}`)
  // Parts that no entry needs under their own names (tsdown.config.ts).
  for (const part of ['gateway', 'middleware']) await add(`dist/${part}.js`)
  return files
}

/** One line for each packed file that is not expected, and for each expected file that is missing. */
export async function unexpectedFiles(packed: string[]): Promise<string[]> {
  const expected = await expectedFiles()
  return [
    ...packed.filter((path) => !expected.has(path)).map((path) => `${path} must not be published.`),
    ...[...expected].filter((path) => !packed.includes(path)).map((path) => `${path} is missing.`),
  ]
}
