import { ErrorReply } from 'redis'
import { expect, test } from 'vitest'
import { parseCommand, parseCommands } from '../src/request.ts'
import { Scripts } from '../src/scripts.ts'
import { openReply } from '../src/translated.ts'

/** The CPU time that `work` takes, in ms. Unlike the time of the clock, it does not depend on other processes. */
function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const evaluate = (code: string) => () => new Scripts().translate('eval', ['eval', code, '0'])
const annotated = `${'\x011\x01\x01'.repeat(10_000)}${' on @x'.repeat(20_000)}`

test.each([
  ['tabs after the shebang', evaluate(`#!lua${'\t'.repeat(200_000)}\nreturn 1`)],
  ['patterns that are not closed', evaluate(`ARGV[1],'^`.repeat(50_000))],
  ['an error with marks of the guard', () => openReply(new ErrorReply(annotated), 'sha', '')],
])('The time that the bridge takes for a text grows with its length: %s.', (_, work) => {
  expect(cpuMs(work)).toBeLessThan(1000)
})

test.each([
  ['open brackets', '['.repeat(10_000_000)],
  ['open brackets in a command', `["set","k","\\"[",${'['.repeat(10_000_000)}`],
  ['open objects', '{"a":'.repeat(2_000_000)],
])('The time for a body of 10 MB with %s is less than a second.', (_, text) => {
  const body = Buffer.from(text)
  for (const parse of [parseCommand, parseCommands]) {
    expect(cpuMs(() => expect(() => parse(body)).toThrow('expected strings'))).toBeLessThan(1000)
  }
})

test.each([
  ['', 'expected strings', 'empty command'],
  [' ', 'expected strings', 'empty command'],
])(
  'The time for a body of 10 MB with empty arrays (%j) is less than half a second.',
  (space, one, many) => {
    const body = Buffer.from(`[${`[${space}],`.repeat(3_000_000)}["get","k"]]`)
    expect(cpuMs(() => expect(() => parseCommand(body)).toThrow(one))).toBeLessThan(500)
    expect(cpuMs(() => expect(() => parseCommands(body)).toThrow(many))).toBeLessThan(500)
  },
)

test('A large body with brackets inside of strings is a pipeline.', () => {
  const value = '"[[[[\\'.repeat(20_000)
  const pipeline = [
    ['set', 'k', value],
    ['get', 'k'],
  ]
  const parsed = () => parseCommands(Buffer.from(JSON.stringify(pipeline)))
  expect(parsed).not.toThrow()
  expect(parsed()).toEqual(pipeline)
})

test('Of several marks in an error, the last ones are those of the guard.', () => {
  const own = 'ERR a\x017\x01\x01 b'
  const error = new ErrorReply(`${own}\x012\x014\x01 script: x, on @user_script:1.`)
  const reply = new ErrorReply(`${own} script: sha, on @user_script:4.`)
  expect(openReply(error, 'sha', '')).toEqual({ reply, inner: 2 })
})
