/** docs/reference/cli.md describes every command and npm script, its options, and the variables of the Worker. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commands } from '../../dev/cli/commands.ts'
import { run } from '../support/dev-command.ts'
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

const titles = commands.map(({ name }) => `npx sluice ${name}`)

test('Every command and npm script has a heading, and every heading is one of them.', () => {
  const expected = [...Object.keys(scripts).map(headingOf), ...titles]
  expect([...sections.keys()].sort()).toEqual(expected.sort())
})

/** The options that `--help` of a script lists. */
function optionsOf(command: string): string[] {
  const entry = command.split(' ').at(-1)!
  const files = [
    entry,
    entry.replace(/\.ts$/, '/cli.ts'),
    entry.replace(/\/main\.ts$/, '/cli.ts'),
  ].filter(
    (file, index, all) =>
      /\.ts$/.test(file) && existsSync(root + file) && all.indexOf(file) === index,
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

test.each(titles)(
  'The section of %s has a row for every option that --help prints.',
  async (title) => {
    const { stdout } = await run(process.execPath, [
      'dev/cli/main.ts',
      title.split(' ')[2]!,
      '--help',
    ])
    const options = [...stdout.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, option]) => option!)
    expect(options).toContain('--help')
    const section = sections.get(title)!
    const missing = options.filter((one) => one !== '--help' && !section.includes(`| \`${one}`))
    expect(missing).toEqual([])
  },
)

test('Every variable that the Worker reads has a row.', () => {
  const variables = [...read('src/base/bindings.ts').matchAll(/^ {2}([A-Z_]+)\?: string$/gm)]
  expect(variables.length).toBeGreaterThan(5)
  const [, section] = text.split(/^## Variables of the Worker$/m)
  expect(variables.filter(([, name]) => !section!.includes(`\`${name}\``))).toEqual([])
})
