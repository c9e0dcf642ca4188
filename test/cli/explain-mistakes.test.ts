import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseCli } from '../../cli/explain/cli.ts'
import { type ConfigFolder, configFolder, explain } from '../support/dev-command.ts'

let configs: ConfigFolder
beforeAll(async () => {
  configs = await configFolder()
})
afterAll(() => configs.remove())

const path = ['--path', '/']
test.each<[string[], string]>([
  [[], '--path: expected a path like "/login"'],
  [[...path, '--header', 'HOST: b'], '--header: set host with --host'],
  [[...path, '--header', 'CF-Connecting-IP: b'], '--header: set cf-connecting-ip with --ip'],
  [[...path, '--pth', '/'], "Unknown option '--pth'"],
  [['/login'], "Unexpected argument '/login'. This command does not take positional arguments"],
  [['--path'], "Option '--path <value>' argument missing"],
  [[...path, '--method', 'GET', '--body', '{}'], '--body: a GET request has no body'],
])('The arguments %j are refused with one line.', (args, message) => {
  expect(() => parseCli(args)).toThrow(new Error(message))
})

const PATH = 'a path like "/login?next=%2F", percent-encoded'
const HOST = 'a host like "www.example.com"'
const METHOD = 'a method like "POST"'
const IP = 'an address like "203.0.113.7" or "2001:db8::7"'
const HEADER = "'name: value'"
const COOKIE = "'name=value'"
test.each([
  ['--path', 'login', PATH],
  ['--path', '/a#b', PATH],
  ['--path', '/lo\ngin', PATH],
  ['--host', 'a/b', HOST],
  ['--host', 'user@evil', HOST],
  ['--host', 'a:99999', HOST],
  ['--method', 'GET /', METHOD],
  ['--method', 'trace', METHOD],
  ['--ip', '10.0.0.0/8', IP],
  ['--ip', '1.2.3', IP],
  ['--header', 'nothing', HEADER],
  ['--header', 'a b: c', HEADER],
  ['--header', 'a: b\r\nx: y', HEADER],
  ['--header', 'a: ☃', HEADER],
  ['--cookie', 'a', COOKIE],
  ['--cookie', 'a=b; c=d', COOKIE],
  ['--country', 'DEU', 'a country code like "DE"'],
  ['--asn', 'AS1', 'a number like "64500"'],
  ['--colo', 'F', 'the code of a data centre like "FRA"'],
])('The option %s does not accept %j.', (option, value, expected) => {
  const message = `${option}: expected ${expected}, got ${JSON.stringify(value)}`
  expect(() => parseCli([...path, option, value])).toThrow(new Error(message))
})

test('sluice explain exits with 2 after a mistake on the command line.', async () => {
  expect(await explain('--path login')).toEqual({
    code: 2,
    stdout: '',
    stderr: `--path: expected ${PATH}, got "login"\nRun with --help to list all options.\n`,
  })
})

test.each([
  ['nowhere', undefined, ' the file does not exist'],
  ['empty', 'export const a = 1', ' expected the configuration as the default export'],
  ['throws', "throw new Error('on purpose')", ' on purpose'],
  [
    'wrong',
    'export default { policies: [{ name: "a", limit: 0, window: "1m" }] }',
    '1:42: policies[0].limit: expected a whole number of at least 1, got 0',
  ],
  [
    'worse',
    'export default { policy: 7 }',
    ' 2 problems\n  FILE:1:16: policies: expected a list of policies, got nothing\n  FILE:1:18: policy: expected one of the fields',
  ],
])(
  'sluice explain names the file and the error of an invalid configuration: %s.',
  async (name, text, message) => {
    const file = text ? await configs.write(name, text) : join(configs.folder, `${name}.mts`)
    const { code, stdout, stderr } = await explain(`--path / --config ${file}`)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(`${file}:${message.replaceAll('FILE', file)}`)
  },
)
