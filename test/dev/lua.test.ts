import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { minify } from '../../dev/lua/minify.ts'
import { moduleFile, scriptModule } from '../../dev/lua/script.ts'
import { script, scriptSha } from '../../src/core/connection/upstash/script-text.ts'

test('The module of the Worker contains the script of lua/. If not: npm run lua', async () => {
  expect(await readFile(moduleFile, 'utf8')).toBe(scriptModule())
})

test('The script begins with the flag for Upstash.', () => {
  expect(script.startsWith('#!lua flags=allow-key-locking\n')).toBe(true)
})

test('The SHA-1 is the hash of the script that is sent.', () => {
  expect(scriptSha).toBe(createHash('sha1').update(script).digest('hex'))
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
    'an assignment in a function of a table',
    'local a = { b = function()\n local c, d = 1, 2\nend, e = 1 }',
    'local a={b=function()\nlocal a,b=1,2\nend,e=1}\n',
  ],
])('The shortening handles %s.', (_, lua, short) => {
  expect(minify(lua)).toBe(short)
})
