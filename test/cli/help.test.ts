import { afterAll, beforeAll, expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import { optionsOf } from '../../cli/options.ts'
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
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
})

test('The option --version prints the version of package.json.', async () => {
  const stdout = `${manifest.version}\n`
  expect(await sluice(['--version'])).toEqual({ code: 0, stdout, stderr: '' })
})

test.each<[string[], string]>([
  [['devv'], 'Unknown command "devv"; did you mean dev? To list all: npx sluice --help'],
  [['zzz'], 'Unknown command "zzz". To list all: npx sluice --help'],
  [['--foo'], 'Unknown option "--foo". To list all: npx sluice --help'],
  [['--hlep'], 'Unknown option "--hlep"; did you mean --help? To list all: npx sluice --help'],
  [
    ['check', '--polcies'],
    "Unknown option '--polcies'; did you mean --policies? To list all options: npx sluice check --help",
  ],
  [
    ['explain', '--pth', '/'],
    "Unknown option '--pth'; did you mean --path? To list all options: npx sluice explain --help",
  ],
  [
    ['bridge', '--prot', '1'],
    "Unknown option '--prot'; did you mean --port? To list all options: npx sluice bridge --help",
  ],
  [
    ['dev', '--port', '0'],
    '--port: expected a port number, got "0". To list all options: npx sluice dev --help',
  ],
  [
    ['verify'],
    'URL: expected the address of the deployment, such as https://www.example.com. To list all options: npx sluice verify --help',
  ],
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
])('The arguments %j end with one line and exit code 2.', async (args, message) => {
  expect(await sluice(args)).toEqual({ code: 2, stdout: '', stderr: `${message}\n` })
})

test.each(names)(
  'A letter that is missing in the name or in an option of %s is found.',
  async (name) => {
    const command = commands.find((one) => one.name === name)!
    const { stderr } = await sluice([name.slice(0, 1) + name.slice(2)])
    if (name.length > 3) expect(stderr).toContain(`did you mean ${name}?`)
    for (const option of await optionsOf(command)) {
      const { code, stderr } = await sluice([name, `${option.slice(0, 3)}${option.slice(4)}`])
      expect([code, stderr]).toEqual([2, expect.stringContaining('did you mean')])
    }
  },
)
