import { expect, inject, test } from 'vitest'
import { expectedFiles } from '../../tools/package/files.ts'

test('npm pack contains exactly the documents, the entries of package.json, and the files that these import.', async () => {
  expect(inject('packedFiles')).toEqual([...(await expectedFiles())].sort())
})

test('npm pack contains no test, no source and no development file.', () => {
  const outside = inject('packedFiles').filter(
    (path) =>
      !/^dist\/(node\/)?[\w-]+\.(js|d\.ts)$/.test(path) &&
      !/^dist\/node\/guard\/\w+\.lua$/.test(path), // scripts of the bridge
  )
  expect(outside).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/openapi.json',
    'package.json',
  ])
})
