import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../cli/project/load-config.ts'
import { script } from '../../cli/replay/decide/script-parts.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { compiledCalls } from '../../src/core/connection/upstash/sets.ts'
import { minify } from '../../tools/lua/minify.ts'
import { luaModules } from '../../tools/lua/script.ts'
import { type ConfigFolder, configFolder, run } from '../support/dev-command.ts'

test.each(luaModules)('%s contains the script of lua/. If not: npm run lua', async (file, text) => {
  expect(await readFile(file, 'utf8')).toBe(text())
})

test('The script begins with the flag for Upstash.', () => {
  expect(script.startsWith('#!lua flags=allow-key-locking\n')).toBe(true)
})

test('The short script has no comments, no empty lines and no indentation.', () => {
  expect(script.split('\n').filter((line) => /^\s|--/.test(line))).toEqual([])
})

test.each([
  ['comments', "-- one\nlocal text = '--' -- two\n\nreturn text", "local a='--'\nreturn a\n"],
  ['spaces', 'local sum = 1 .. 2\nreturn sum  -  -1', 'local a=1 .. 2\nreturn a- -1\n'],
  [
    'parameters',
    'local function add(one, two)\n  return one + two\nend',
    'local function a(a,b)\nreturn a+b\nend\n',
  ],
  [
    'fields',
    'local one = { one = 1, two = one }\nreturn one.one',
    'local a={one=1,two=a}\nreturn a.one\n',
  ],
  [
    'names of a function and of what it uses',
    'local sum = 1\nlocal function add(one)\n  sum = sum + one\nend\nlocal function id(one)\n  return one\nend',
    'local b=1\nlocal function a(a)\nb=b+a\nend\nlocal function c(a)\nreturn a\nend\n',
  ],
  ['methods and globals', 'return text:sub(#KEYS)', 'return a:sub(#KEYS)\n'],
  [
    'words of a template',
    '$each\nlocal time$n, last = $cost, ARGV[OFFSET + 1]\n$end\nlast = time$n',
    '$each\nlocal a$n,b=$cost,ARGV[OFFSET+1]\n$end\nb=a$n\n',
  ],
  [
    'an assignment in a function of a table',
    'local a = { b = function()\n local c, d = 1, 2\nend, e = 1 }',
    'local a={b=function()\nlocal a,b=1,2\nend,e=1}\n',
  ],
])('The shortening handles %s.', (_, lua, short) => {
  expect(minify(lua)).toBe(short)
})

describe('npm run lua -- --show', () => {
  const show = (...args: string[]) => run('node', ['tools/lua.ts', '--show', ...args])
  let configs: ConfigFolder
  let file = ''
  beforeAll(async () => {
    configs = await configFolder()
    file = await configs.write(
      'show',
      `export default { policies: [
        { name: 'a', limit: 7, window: '1m' },
        { name: 'b', limit: 8, window: '1d', algorithm: 'token-bucket', burst: 9 },
        { name: 'c', limit: 10, window: '1m', algorithm: 'sliding-log' },
      ] }`,
    )
  })
  afterAll(() => configs.remove())

  test('It prints the script that Redis gets, with names and comments.', async () => {
    const { stdout, code } = await show(file)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^#!lua flags=allow-key-locking\n-- Sliding window: counts/)
    expect(stdout).toContain('sliding_window(now, 7, 60000, 1, nil')
    expect(stdout).toContain('token_bucket(now, 8, 86400000, 9, 1, nil')
    expect(stdout).not.toMatch(/\$\w|undefined/)
    const { policies } = parseConfig(await loadConfig(file))
    const limits = policies.slice(0, 2).map((terms) => ({ subject: 'x', terms, cost: 1 }))
    const { script } = compiledCalls()([{ mode: 'take', limits }])!
    const withoutNames = (lua: string) => lua.replace(/[A-Za-z_]\w*|\s+/g, '')
    expect(withoutNames(minify(stdout.replace(/^#!.*\n/, '')))).toBe(
      withoutNames(script.text.replace(/^#!.*\n/, '')),
    )
  })

  test('It prints the script of the named policies, and refuses others.', async () => {
    expect((await show(file, 'b')).stdout).not.toContain('sliding')
    expect(await show(file, 'c')).toMatchObject({
      code: 1,
      stderr: `${file}: the general script decides a request with these policies\n`,
    })
    expect(await show(file, 'x')).toMatchObject({ code: 1, stderr: `${file}: no policy "x"\n` })
  })
})
