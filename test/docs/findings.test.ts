/** The linter over every configuration of README.md, SECURITY.md and docs/. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { lint, lintWorker } from '../../src/lint/lint.ts'

const root = new URL('../../', import.meta.url)
const pages = (await readdir(new URL('docs', root), { recursive: true }))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)

/** The argument of `defineConfig`, `createGateway` and `rateLimiter`: an object whose last line is indented like its first. */
const CALL =
  /^( *)[^\n]*?\b(defineConfig|createGateway|rateLimiter)(?:<\w+>)?\((\{.*?\n\1\}|\{[^\n]*\})\)/gms

const examples: [place: string, code: string, page: string][] = []
for (const page of ['README.md', 'SECURITY.md', ...pages]) {
  const text = await readFile(new URL(page, root), 'utf8')
  for (const [, name, block] of text.matchAll(/^```ts *(\S*)\n(.*?)^```$/gms)) {
    for (const [, , , code] of block!.matchAll(CALL)) {
      if (code!.startsWith('{ ...')) continue // a change of a configuration that stands elsewhere
      examples.push([`${page} ${name || 'without a name'}`, code!, page])
    }
  }
}

test('the examples are found', () => {
  expect(examples.length).toBeGreaterThan(35)
})

test.each(examples)('the example %s has no findings', (_, code, page) => {
  const options = new Function(`return ${code}`)()
  expect(lint(options)).toEqual([])
  // Examples of a field leave the origin out; the README shows whole files, and a middleware.
  if (page === 'README.md' && code.includes('origin:')) expect(lintWorker(options)).toEqual([])
})
