/** Runs the linter over the examples of docs/reference/linter.md, and over every configuration of README.md, SECURITY.md and docs/. */
import { expect, test } from 'vitest'
import { findingCodes } from '../../src/core/config/findings.ts'
import { lint, lintWorker } from '../../src/lint/lint.ts'
import { redis } from '../../src/stores/redis.ts'
import { evaluate } from '../support/entries.ts'
import { blocksOf, pageAt, pages } from '../support/pages.ts'

const policies = [{ name: 'per-ip', limit: 100, window: '1m' }]

/** Each heading with a code, and the two configurations below it. */
const findings = [
  ...pageAt('docs/reference/linter.md').text.matchAll(
    /^### (\S+)$.*?^```ts\n\/\/ finding\n(.*?)^\/\/ fixed\n(.*?)^```$/gms,
  ),
].map(([, code, broken, fixed]) => [code!, broken!, fixed!] as const)

/** The codes of the findings in the fields of a configuration. An example leaves out the origin, unless it is about the origin. */
function codesOf(example: string, code: string): string[] {
  const [options, ...others] = example.split('// beside\n').map((fields) => ({
    ...(!['no-origin', 'wait-of-calls'].includes(code) && { origin: 'zone' }),
    ...(!fields.includes('policies:') && { policies }),
    ...evaluate(`return {${fields}}`),
  }))
  const found = others.length > 0 ? lint(options, ...others) : lintWorker(options)
  return found.map((finding) => finding.code)
}

test('Every finding has an example.', () => {
  const codes = findings.map(([code]) => code)
  expect(codes.sort()).toEqual([...findingCodes, 'duplicate-name', 'invalid'].sort())
})

test.each(findings)(
  'The example of %s has this finding, and the fixed one has none.',
  (code, broken, fixed) => {
    expect(codesOf(broken, code)).toEqual([code])
    expect(codesOf(fixed, code)).toEqual([])
  },
)

/** A call with an object. The last line of the object has the indentation of its first line. */
const CALL =
  /^(?<indent> *)[^\n]*?\b(?:defineConfig|createGateway|rateLimiter)(?:<\w+>)?\((?<object>\{.*?\n\k<indent>\}|\{[^\n]*\})\)/gms

const examples = pages
  .filter(({ path }) => /^(README|SECURITY|docs\/.*)\.md$/.test(path))
  .flatMap(blocksOf)
  // Vite has a function of the same name.
  .filter(({ language, code }) => language === 'ts' && !/from 'vite(st\/config)?'/.test(code))
  .flatMap(({ page, name, code }) =>
    [...code.matchAll(CALL)]
      .map(({ groups }) => groups!.object!)
      .filter((call) => !call.startsWith('{ ...')) // an override of another configuration
      .map((call) => [`${page} ${name || 'without a name'}`, call, page] as const),
  )

test('The pages have the configurations that this test looks for.', () => {
  expect(examples.length).toBeGreaterThan(35)
})

/** A client of the app. */
const client = { sendCommand() {} }

test.each(examples)('The linter has no findings about the configuration %s.', (_, code, page) => {
  const options = evaluate(`return ${code}`, { policies, store: undefined, redis, client })
  expect(lint(options)).toEqual([])
  // The README shows complete configurations. Examples in docs/ may leave out `origin`.
  if (page === 'README.md' && code.includes('origin:')) expect(lintWorker(options)).toEqual([])
})
