/** Runs the linter over the examples of docs/reference/linter.md. */
import { expect, test } from 'vitest'
import { findingCodes } from '../../src/config/findings.ts'
import { lintWorker } from '../../src/lint/lint.ts'
import { evaluate } from '../support/entries.ts'
import { pages } from '../support/pages.ts'

const { text } = pages.find(({ path }) => path === 'docs/reference/linter.md')!

/** Each heading with a code, and the two configurations below it. */
const examples = [
  ...text.matchAll(/^### (\S+)$.*?^```ts\n\/\/ finding\n(.*?)^\/\/ fixed\n(.*?)^```$/gms),
].map(([, code, broken, fixed]) => [code!, broken!, fixed!] as const)

/** The codes of the findings in the fields of a configuration. An example leaves out the origin, unless it is about the origin. */
function codesOf(fields: string, code: string): string[] {
  const options = {
    ...(code !== 'no-origin' && { origin: 'zone' }),
    ...(!fields.includes('policies:') && {
      policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
    }),
    ...evaluate(`return {${fields}}`),
  }
  return lintWorker(options).map((finding) => finding.code)
}

test('Every finding has an example.', () => {
  const codes = examples.map(([code]) => code)
  expect(codes.sort()).toEqual([...findingCodes, 'duplicate-name', 'invalid'].sort())
})

test.each(examples)(
  'The example of %s has this finding, and the fixed one has none.',
  (code, broken, fixed) => {
    expect(codesOf(broken, code)).toEqual([code])
    expect(codesOf(fixed, code)).toEqual([])
  },
)
