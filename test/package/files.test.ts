import { expect, inject, test } from 'vitest'
import { expectedFiles } from '../../tools/package/files.ts'
import { found, read } from '../support/pages.ts'
import { createConsumer } from './support/consumer.ts'

test('npm pack contains exactly the documents, the entries of package.json, and the files that these import.', async () => {
  expect(inject('packedFiles')).toEqual([...(await expectedFiles())].sort())
})

test('npm pack contains no test, no source and no development file.', () => {
  const outside = inject('packedFiles').filter(
    (path) =>
      !/^dist\/((node|built|shared)\/)?[\w-]+\.(js|d\.ts)$/.test(path) &&
      !/^dist\/node\/guard\/\w+\.lua$/.test(path) && // scripts of the bridge
      !/^docs\/((guides|reference|explanation)\/)?[\w-]+\.md$/.test(path),
  )
  expect(outside).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/openapi.json',
    'llms.txt',
    'package.json',
  ])
})

test('Every page that llms.txt names is in the package, and npx sluice docs finds them there.', async () => {
  const links = found(read('llms.txt'), /\]\(([^)]+)\)/g)
  expect(links.length).toBeGreaterThan(15)
  expect(links.filter((path) => !inject('packedFiles').includes(path))).toEqual([])
  const project = await createConsumer({ files: {} })
  expect(await project.run('sluice', 'docs', 'throttle-logins')).toMatch(/^# Throttle logins\n/)
  expect(await project.run('sluice', 'help', 'store-error')).toContain(
    '| `store-error` | `timeout`',
  )
})
