import { glob, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const src = fileURLToPath(new URL('../../src/', import.meta.url))
const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm

test('No type name is declared in more than one file of src.', async () => {
  const declared: { name: string; file: string }[] = []
  for await (const file of glob('**/*.ts', { cwd: src })) {
    const text = await readFile(src + file, 'utf8')
    const names = new Set([...text.matchAll(DECLARATION)].map(([, name]) => name!))
    for (const name of names) declared.push({ name, file })
  }
  expect(declared.length).toBeGreaterThan(100)
  const filesOf = Map.groupBy(declared, ({ name }) => name)
  const repeated = [...filesOf].filter(([, places]) => places.length > 1)
  expect(repeated.map(([name, places]) => [name, ...places.map(({ file }) => file)])).toEqual([])
})
