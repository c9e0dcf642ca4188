/** docs/reference/cli.md describes every command, its options, and the variables of the Worker; docs/contribute/scripts.md every npm script. */
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import { sluice } from '../support/dev-command.ts'
import { found, pageAt, read, root, sectionOf } from '../support/pages.ts'

const scripts: Record<string, string> = JSON.parse(read('package.json')).scripts
const page = pageAt('docs/reference/cli.md')
const scriptsPage = pageAt('docs/contribute/scripts.md')
const headingOf = (script: string) =>
  ['start', 'test'].includes(script) ? `npm ${script}` : `npm run ${script}`

const titles = commands.map(({ name }) => `npx sluice ${name}`)

test('Every command and npm script has a heading, and every heading is one of them.', () => {
  expect(found(page.text, /^### (.*)/gm).sort()).toEqual([...titles].sort())
  expect(found(scriptsPage.text, /^### (.*)/gm).sort()).toEqual(
    Object.keys(scripts).map(headingOf).sort(),
  )
})

/** The options that a help text lists. */
const optionsIn = (help: string) =>
  found(help, /^ {2}(--[a-z-]+)/gm).filter((option) => option !== '--help')

/** The options that `--help` of a script lists. */
function optionsOf(command: string): string[] {
  const entry = command.split(' ').at(-1)!
  const files = new Set([entry, entry.replace(/(\/main)?\.ts$/, '/cli.ts')])
  return [...files]
    .filter((file) => /\.ts$/.test(file) && existsSync(root + file))
    .flatMap((file) => optionsIn(read(file)))
}

const documented = Object.entries(scripts)
  .map(([script, command]) => [headingOf(script), optionsOf(command)] as const)
  .filter(([, options]) => options.length > 0)

/** Expects each option in a row of the section of the heading. The options of the bridge are on a page of its own. */
const expectRows = (heading: string, options: string[]) => {
  const section =
    heading === 'npx sluice bridge'
      ? sectionOf(pageAt('packages/upstash-bridge/README.md'), 'Start it')
      : sectionOf(titles.includes(heading) ? page : scriptsPage, heading)
  const rows = found(section, /^\| (`--.*?`) \|/gm).join(' ')
  expect(options.filter((option) => !rows.includes(`\`${option}`))).toEqual([])
}

test('The scripts with a help text are found.', () => {
  expect(documented.length).toBeGreaterThan(6)
})

test.each(documented)('The section of %s has a row for every option of its help.', expectRows)

test.each(titles)(
  'The section of %s has a row for every option that --help prints.',
  async (title) => {
    const { stdout } = await sluice([title.split(' ')[2]!, '--help'])
    expect(stdout).toMatch(/^ {2}--help/m)
    expectRows(title, optionsIn(stdout))
  },
)

test('Every variable that the Worker reads has a row.', () => {
  const variables = found(read('src/core/base/bindings.ts'), /^ {2}([A-Z_]+)\?: string$/gm)
  expect(variables.length).toBeGreaterThan(5)
  const [, section] = page.text.split(/^## Variables of the Worker$/m)
  expect(variables.filter((name) => !section!.includes(`\`${name}\``))).toEqual([])
})
