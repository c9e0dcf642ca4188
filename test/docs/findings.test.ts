/** Runs the linter on every configuration of README.md, SECURITY.md and docs/. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { lint, lintWorker } from '../../src/lint/lint.ts'
import { evaluate } from '../support/entries.ts'

const root = new URL('../../', import.meta.url)
const pages = (await readdir(new URL('docs', root), { recursive: true }))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)

/** A call with an object. The last line of the object has the indentation of its first line. */
const CALL =
  /^( *)[^\n]*?\b(defineConfig|createGateway|rateLimiter)(?:<\w+>)?\((\{.*?\n\1\}|\{[^\n]*\})\)/gms

const examples: [place: string, code: string, page: string][] = []
for (const page of ['README.md', 'SECURITY.md', ...pages]) {
  const text = await readFile(new URL(page, root), 'utf8')
  for (const [, name, block] of text.matchAll(/^```ts *(\S*)\n(.*?)^```$/gms)) {
    for (const [, , , code] of block!.matchAll(CALL)) {
      if (code!.startsWith('{ ...')) continue // an override of another configuration
      examples.push([`${page} ${name || 'without a name'}`, code!, page])
    }
  }
}

test('The pages have the configurations that this test looks for.', () => {
  expect(examples.length).toBeGreaterThan(35)
})

test.each(examples)('The linter has no findings about the configuration %s.', (_, code, page) => {
  const policies = [{ name: 'per-ip', limit: 100, window: '1m' }]
  const options = evaluate(`return ${code}`, { policies })
  expect(lint(options)).toEqual([])
  // The README shows complete configurations. Examples in docs/ may leave out `origin`.
  if (page === 'README.md' && code.includes('origin:')) expect(lintWorker(options)).toEqual([])
})
