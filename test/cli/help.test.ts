import { afterAll, beforeAll, expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import manifest from '../../package.json' with { type: 'json' }
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { run, sluice } from '../support/dev-command.ts'

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
})
afterAll(() => project.remove())

const names = commands.map(({ name }) => name)

test.each([[[]], [['--help']], [['-h']]])(
  'With the arguments %j sluice lists every command.',
  async (args) => {
    const { code, stdout, stderr } = await sluice(args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const listed = [...stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name)
    expect(listed).toEqual(names)
    expect(names).toEqual(expect.arrayContaining(['init', 'dev', 'check', 'explain', 'bridge']))
  },
)

test('The command runs from source and in the package, and prints the same.', async () => {
  const expected = await sluice(['--help'])
  expect(await run(process.execPath, ['cli/main.ts', '--help'])).toEqual(expected)
  expect(await project.spawned(['--help'])).toEqual(expected)
})

test.each(names)('The option --help of %s prints its usage.', async (name) => {
  const { code, stdout, stderr } = await sluice([name, '--help'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`\n  npx sluice ${name}`)
  expect(stdout).toMatch(/^ {2}--help +\S/m)
  expect(stdout).not.toContain('npm run')
})

test('The option --version prints the version of package.json.', async () => {
  const stdout = `${manifest.version}\n`
  expect(await sluice(['--version'])).toEqual({ code: 0, stdout, stderr: '' })
})

test.each<[string[], string]>([
  [['devv'], 'Unknown command "devv". To list all: npx sluice --help'],
  [['--foo'], 'Unknown option "--foo". To list all: npx sluice --help'],
  ...names.map((name): [string[], string] => [
    [name, '--foo'],
    `Unknown option '--foo'. To list all options: npx sluice ${name} --help`,
  ]),
  [
    ['check', 'x'],
    "Unexpected argument 'x'. This command does not take positional arguments. To list all options: npx sluice check --help",
  ],
  [
    ['check', '--config'],
    "Option '--config <value>' argument missing. To list all options: npx sluice check --help",
  ],
  [
    ['bridge', '--port', 'x'],
    '--port: expected a whole number from 0 to 65535, got "x". To list all options: npx sluice bridge --help',
  ],
])('The arguments %j end with one line and exit code 1.', async (args, message) => {
  expect(await sluice(args)).toEqual({ code: 1, stdout: '', stderr: `${message}\n` })
})
