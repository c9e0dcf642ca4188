/** docs/reference/log-events.md lists every event that the code logs, and no other. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { found, pageAt, read, root } from '../support/pages.ts'

const source = (file: string) => read(`src/${file}`)
const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map(source)

/** The event and the code of each call of `log`; the code is undefined unless it is a literal. */
const logged = files.flatMap((text) =>
  [...text.matchAll(/\blog(?:\?\.)?\(\s*'([a-z-]+)',\s*(?:'([a-z0-9-]*)')?/g)].map(
    ([, event, code]) => ({ event: event!, code }),
  ),
)

const { text } = pageAt('docs/reference/log-events.md')

/** The rows of the page. A row without an event belongs to the event above it. */
const rows: { event: string; code: string }[] = []
for (const [, first, code] of text.matchAll(
  /^\| (?:<a id="[a-z-]+"><\/a>`([a-z-]+)` )?\|([^|]*)\|(?:[^|]+\|){2}$/gm,
)) {
  rows.push({ event: first ?? rows.at(-1)!.event, code: code!.trim().replaceAll('`', '') })
}
const codesOf = (event: string) => rows.filter((row) => row.event === event).map(({ code }) => code)

test('Every event that the code logs has a row, and every row is an event of the code.', () => {
  const events = new Set(logged.map(({ event }) => event))
  expect(events.size).toBeGreaterThan(15)
  expect([...new Set(rows.map(({ event }) => event))].sort()).toEqual([...events].sort())
})

test('Every code that a call of log names has a row.', () => {
  const literal = logged.filter(({ code }) => code !== undefined)
  expect(literal.length).toBeGreaterThan(5)
  expect(literal.filter(({ event, code }) => !codesOf(event).includes(code!))).toEqual([])
})

test('Every code of a store error has a row, except those that are not logged.', () => {
  const [, meanings] = /const meanings = \{\n(.*?)\n\}/s.exec(source('core/base/errors.ts'))!
  const codes = found(meanings!, /^ {2}'?([a-z-]+)'?:/gm)
  expect(codes.length).toBeGreaterThan(5)
  const unlogged = ['circuit-open', 'idempotency-conflict']
  expect(codesOf('store-error').sort()).toEqual(
    codes.filter((code) => !unlogged.includes(code)).sort(),
  )
})

test('Every code of a failed download of keys has a row.', () => {
  const codes = ['core/base/download.ts', 'features/jwt/jwks.ts'].flatMap((file) =>
    found(source(file), /\bcode: '([a-z-]+)'/g),
  )
  expect(codesOf('jwks').sort()).toEqual([...new Set(codes)].sort())
})
