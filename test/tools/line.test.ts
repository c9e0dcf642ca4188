/** The line of one request, as a reader follows it: how often it changes the room. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { roomOf } from '../../tools/imports.ts'
import type { Step } from '../support/walk.ts'

/** Rooms of values and helpers, which each room may call. */
const HELPERS = ['core/base']

test('One allowed request of the middleware changes the room at most 16 times.', async () => {
  const args = ['--import', './tools/node-version.mjs', 'test/support/walk.ts']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { body, steps } = JSON.parse(stdout) as { body: string; steps: Step[] }
  expect(body).toBe('passed')
  const rooms = steps.map(({ file }) => roomOf(file)).filter((room) => !HELPERS.includes(room))
  const visits = rooms.filter((room, index) => room !== rooms[index - 1])
  expect(visits).toContain('core/connection')
  expect(visits.length - 1, visits.join(' > ')).toBeLessThanOrEqual(16)
  const files = new Set(steps.map(({ file }) => file)).size
  console.info(`${visits.join(' > ')}: ${files} files, ${steps.length} calls`)
})

/** What was made on the way only to be taken apart again, or is kept twice: the file, and the text that shows it. */
const UNDONE: [file: string, text: RegExp][] = [
  ['decide/decide', /matchesIn/g], // the policies that apply, out of a list with those that do not
  ['connection/upstash/upstash', /lists: \[requests\]/g], // a list around each request
  ['connection/upstash/upstash', /StoreResult\[\]\[\]/g],
  ['decide/limit', /terms: policy/g], // a policy under two names
]

test('No value of the way is kept twice, or is made to be taken apart again.', async () => {
  const found = await Promise.all(
    UNDONE.map(async ([file, text]) => (await readFile(`src/core/${file}.ts`, 'utf8')).match(text)),
  )
  expect(found.flatMap((texts) => texts ?? [])).toEqual([])
})

/** The types that one limit has on its way through src, with the file that declares each. A state of a store also says who has answered. */
const NAMES: Record<string, string> = {
  Policy: 'config/schema/policy',
  Match: 'decide/matched',
  PolicyLimit: 'decide/limit',
  Limit: 'connection/store',
  Terms: 'connection/store',
  CompiledLimit: 'connection/upstash/compile',
  QuotaState: 'base/decision',
  LimitState: 'base/decision',
}

/** The rooms and files of the way. A type of them that has the word for a limit, a quota or its state is one of the names. */
const WAY = [
  ...new Set(Object.values(NAMES)),
  'connection/algorithms/algorithm',
  'connection/upstash/reply',
]
/** Types of these files that are no such name, and why. */
const OTHER_TYPES: Record<string, string> = {
  StoreState: 'QuotaState, with who has answered',
  QuotaTerms: 'the part of Terms that the arithmetic needs',
  QuotaAlgorithm: 'a function',
  State: 'the numbers in the record',
  LimitStatus: 'an answer of the API',
  ClaimLimit: 'a field of a policy as it is written',
  NameValues: 'a function',
}

test('One limit has at most 8 names on its way.', async () => {
  const found = new Set<string>()
  for (const file of WAY) {
    const text = await readFile(`src/core/${file}.ts`, 'utf8')
    for (const [, name] of text.matchAll(/^(?:export )?(?:interface|type) (\w+)/gm))
      if (/(?:Limit|Quota|State|Match|Policy|Terms|Outcome|Values)$|^(?:Limit|Quota)/.test(name!))
        found.add(name!)
  }
  const names = [...found].filter((name) => !(name in OTHER_TYPES))
  expect(names.sort()).toEqual(Object.keys(NAMES).sort())
  expect(names.length).toBeLessThanOrEqual(8)
})
