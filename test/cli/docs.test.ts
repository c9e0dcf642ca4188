/** `sluice docs` and `sluice help`: the pages of the package in a terminal, for people and for coding agents. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findingCodes } from '../../src/core/config/findings.ts'
import { sluice } from '../support/dev-command.ts'
import { found, pageAt, pages, read, root } from '../support/pages.ts'

const output = async (...args: string[]) => {
  const { code, stdout, stderr } = await sluice(args)
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return stdout
}

/** The anchors in tables: fields and log events. */
const rows = pages
  .filter(({ path }) => path.startsWith('docs/reference/'))
  .flatMap(({ text }) => found(text, /^\| <a id="([^"]+)">/gm))

test('docs prints a page by its name, its path or the path of a link.', async () => {
  const { text } = pageAt('docs/guides/throttle-logins.md')
  for (const name of [
    'throttle-logins',
    'guides/throttle-logins',
    'docs/guides/throttle-logins.md',
  ])
    expect(await output('docs', name)).toBe(`${text.trimEnd()}\n`)
})

test('docs without a page lists the pages, without those for contributors.', async () => {
  const list = await output('docs')
  expect(list).toContain('[Throttle logins](guides/throttle-logins.md)')
  expect(list).not.toContain('contribute/')
})

test('docs with a section prints this section only.', async () => {
  const text = await output('docs', 'configuration#shield')
  expect(text).toMatch(/^\| field \|.*\n\|.*\n\| `shield` \|.*\n$|^#+ .*shield/i)
  // The line "# Throttle logins" is in a block of code.
  expect(await output('docs', 'cli#npx-sluice-docs')).toContain('prints one section.')
  expect(await output('docs', 'hono-app#pitfalls')).toMatch(/^## Pitfalls\n/)
})

test.each([...findingCodes])('help %s prints the section of the finding.', async (code) => {
  expect(await output('help', code)).toMatch(new RegExp(`^### ${code}\n`))
})

test('help prints the row of each field and each log event with its header.', async () => {
  expect(rows.length).toBeGreaterThan(80)
  for (const name of rows) expect(await output('help', name)).toMatch(/^(\| .*\n){3,}|^#+ /)
  expect(await output('help', 'store-error')).toContain('| | `unreachable` |')
  expect(await output('help', 'onStoreError')).toContain('`onStoreError`')
})

test('help of a name that a command and a feature have prints both.', async () => {
  expect(await output('help', 'verify')).toMatch(
    /^\| feature in `use` \|[\s\S]*\n### npx sluice verify\n/,
  )
  expect(await output('help', 'check')).toMatch(/^### npx sluice check\n/)
})

test.each([
  [['docs', 'nothing'], 'There is no page "nothing". To list the pages: npx sluice docs\n'],
  [
    ['docs', 'cli#nothing'],
    'There is no section "nothing" on the page reference/cli. To list the pages: npx sluice docs\n',
  ],
])('%j is an error that says where the list is.', async (args, stderr) => {
  expect(await sluice(args)).toEqual({ code: 1, stdout: '', stderr })
})

test.each([
  [['docs', 'trotle-logins'], 'page "trotle-logins"; did you mean throttle-logins?'],
  [['docs', 'guide/throttle-logins'], '; did you mean guides/throttle-logins?'],
  [['docs', 'configuration#shild'], 'reference/configuration; did you mean shield?'],
  [['help', 'login-fail-open'], 'section "login-fail-open"; did you mean login-fails-open?'],
  [['help', 'onStoreErrors'], '; did you mean onStoreError?'],
  [['help', 'store-eror'], '; did you mean store-error?'],
  [['help', 'verfy'], '; did you mean verify?'],
])('%j is an error that names what was probably meant.', async (args, meant) => {
  const { code, stdout, stderr } = await sluice(args)
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain(`${meant} To list the pages: npx sluice docs`)
})

test.each([
  [['docs', 'build', 'deploy'], 'Expected one page. To list all options: npx sluice docs --help\n'],
  [['help', 'wait', 'time'], 'Expected one name. To list all options: npx sluice help --help\n'],
  [['help', ''], 'Expected one name. To list all options: npx sluice help --help\n'],
])('%j is a mistake on the command line.', async (args, stderr) => {
  expect(await sluice(args)).toEqual({ code: 2, stdout: '', stderr })
})

test('A name without a section is an error with a command that searches.', async () => {
  const { code, stderr } = await sluice(['help', 'nothing-like-it'])
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^The documentation has no section "nothing-like-it"\. .*grep -r "nothing-like-it" /,
  )
})

test('No message of the command line leads to a page by its path in the repository.', () => {
  const files = readdirSync(`${root}cli`, { recursive: true, encoding: 'utf8' })
  const broken = files
    .filter((path) => path.endsWith('.ts'))
    .filter((path) =>
      read(`cli/${path}`)
        .replace(/^ *(\/\*\*|\*|\/\/).*/gm, '')
        .match(/docs\/(reference|guides|explanation)\//),
    )
  expect(broken).toEqual([])
})
