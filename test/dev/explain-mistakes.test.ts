import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseCli } from '../../dev/explain/cli.ts'
import { type ConfigFolder, configFolder, explain } from '../support/dev-command.ts'

let configs: ConfigFolder
let write: ConfigFolder['write']
beforeAll(async () => {
  configs = await configFolder()
  write = configs.write
})
afterAll(() => configs.remove())

describe('mistakes in the arguments of npm run explain', () => {
  const path = ['--path', '/']
  test.each<[string[], string]>([
    [[], '--path: expected a path like "/login"'],
    [
      ['--path', 'login'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "login"',
    ],
    [
      ['--path', '/a#b'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "/a#b"',
    ],
    [
      ['--path', '/lo\ngin'],
      '--path: expected a path like "/login?next=%2F", percent-encoded, got "/lo\\ngin"',
    ],
    [[...path, '--host', 'a/b'], '--host: expected a host like "www.example.com", got "a/b"'],
    [
      [...path, '--host', 'user@evil'],
      '--host: expected a host like "www.example.com", got "user@evil"',
    ],
    [
      [...path, '--host', 'a:99999'],
      '--host: expected a host like "www.example.com", got "a:99999"',
    ],
    [[...path, '--method', 'GET /'], '--method: expected a method like "POST", got "GET /"'],
    [[...path, '--method', 'trace'], '--method: expected a method like "POST", got "trace"'],
    [
      [...path, '--ip', '10.0.0.0/8'],
      '--ip: expected an address like "203.0.113.7" or "2001:db8::7", got "10.0.0.0/8"',
    ],
    [
      [...path, '--ip', '1.2.3'],
      '--ip: expected an address like "203.0.113.7" or "2001:db8::7", got "1.2.3"',
    ],
    [[...path, '--header', 'nothing'], '--header: expected \'name: value\', got "nothing"'],
    [[...path, '--header', 'a b: c'], '--header: expected \'name: value\', got "a b: c"'],
    [
      [...path, '--header', 'a: b\r\nx: y'],
      '--header: expected \'name: value\', got "a: b\\r\\nx: y"',
    ],
    [[...path, '--header', 'a: ☃'], '--header: expected \'name: value\', got "a: ☃"'],
    [[...path, '--header', 'HOST: b'], '--header: set host with --host'],
    [[...path, '--header', 'CF-Connecting-IP: b'], '--header: set cf-connecting-ip with --ip'],
    [[...path, '--cookie', 'a'], '--cookie: expected \'name=value\', got "a"'],
    [[...path, '--cookie', 'a=b; c=d'], '--cookie: expected \'name=value\', got "a=b; c=d"'],
    [[...path, '--country', 'DEU'], '--country: expected a country code like "DE", got "DEU"'],
    [[...path, '--asn', 'AS1'], '--asn: expected a number like "64500", got "AS1"'],
    [[...path, '--colo', 'F'], '--colo: expected the code of a data centre like "FRA", got "F"'],
    [[...path, '--pth', '/'], "Unknown option '--pth'"],
    [['/login'], "Unexpected argument '/login'. This command does not take positional arguments"],
    [['--path'], "Option '--path <value>' argument missing"],
  ])('The arguments %j are refused with one line.', (args, message) => {
    expect(() => parseCli(args)).toThrow(new Error(message))
  })

  test('npm run explain exits with 1 after a mistake on the command line.', async () => {
    expect(await explain(['--path', 'login'])).toEqual({
      code: 1,
      stdout: '',
      stderr:
        '--path: expected a path like "/login?next=%2F", percent-encoded, got "login"\nRun with --help to list all options.\n',
    })
  })

  test.each([
    ['nowhere', undefined, 'the file does not exist'],
    ['empty', 'export const a = 1', 'expected the configuration as the default export'],
    ['throws', "throw new Error('on purpose')", 'on purpose'],
    [
      'wrong',
      'export default { policies: [{ name: "a", limit: 0, window: "1m" }] }',
      'policies[0].limit: expected a whole number of at least 1, got 0',
    ],
    [
      'worse',
      'export default { policy: 7 }',
      '2 problems\n  policies: expected a list of policies, got nothing\n  policy: expected one of the fields',
    ],
  ])(
    'npm run explain names the file and the error of an invalid configuration: %s.',
    async (name, text, message) => {
      const file = text ? await write(name, text) : join(configs.folder, `${name}.mts`)
      const { code, stdout, stderr } = await explain([...path, '--config', file])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain(`${file}: ${message}`)
    },
  )
})
