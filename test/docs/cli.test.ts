/** docs/reference/cli.md describes every npm script, its options, and the variables of the Worker. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pages, root } from '../support/pages.ts'

const read = (file: string) => readFileSync(root + file, 'utf8')
const scripts: Record<string, string> = JSON.parse(read('package.json')).scripts
const { text } = pages.find(({ path }) => path === 'docs/reference/cli.md')!

/** The sections of the scripts, by their headings. */
const sections = new Map(
  text
    .split(/^(?=##)/m)
    .map((section) => [/^### (.*)/.exec(section)?.[1], section] as const)
    .filter(([heading]) => heading !== undefined),
)
const headingOf = (script: string) =>
  ['start', 'test'].includes(script) ? `npm ${script}` : `npm run ${script}`

test('Every npm script has a heading, and every heading is an npm script.', () => {
  expect([...sections.keys()].sort()).toEqual(Object.keys(scripts).map(headingOf).sort())
})

/** The options that `--help` of a script lists. */
function optionsOf(command: string): string[] {
  const entry = command.split(' ').at(-1)!
  const files = [entry, entry.replace(/\.ts$/, '/cli.ts')].filter(
    (file) => /\.ts$/.test(file) && existsSync(root + file),
  )
  const options = files.flatMap((file) => [...read(file).matchAll(/^ {2}(--[a-z-]+)/gm)])
  return options.map(([, option]) => option!).filter((option) => option !== '--help')
}

const documented = Object.entries(scripts)
  .map(([script, command]) => [headingOf(script), optionsOf(command)] as const)
  .filter(([, options]) => options.length > 0)

test('The scripts with a help text are found.', () => {
  expect(documented.length).toBeGreaterThan(6)
})

test.each(documented)(
  'The section of %s has a row for every option of its help.',
  (heading, options) => {
    const section = sections.get(heading)!
    expect(options.filter((option) => !section.includes(`| \`${option}`))).toEqual([])
  },
)

test('Every variable that the Worker reads has a row.', () => {
  const variables = [...read('src/base/bindings.ts').matchAll(/^ {2}([A-Z_]+)\?: string$/gm)]
  expect(variables.length).toBeGreaterThan(5)
  const [, section] = text.split(/^## Variables of the Worker$/m)
  expect(variables.filter(([, name]) => !section!.includes(`\`${name}\``))).toEqual([])
})
