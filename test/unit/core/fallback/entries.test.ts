import { expect, test } from 'vitest'
import { LocalEntries } from '../../../../src/core/fallback/entries.ts'

const MAX_ENTRIES = 10_000

/** Samples entries in turn, beginning with the oldest. */
function inTurn() {
  let next = 0
  return () => ((next++ % MAX_ENTRIES) + 0.5) / MAX_ENTRIES
}

function filled() {
  const entries = new LocalEntries(inTurn())
  for (let n = 0; n < MAX_ENTRIES; n++) entries.getOrAdd(`${n}`, 0).until = 1000
  return entries
}

test('An entry is added once.', () => {
  const entries = new LocalEntries(Math.random)
  const entry = entries.getOrAdd('a', 0)
  expect(entries.getOrAdd('a', 0)).toBe(entry)
  entries.remove(entry)
  expect(entries.get('a')).toBeUndefined()
})

test('An eviction removes the sampled entry with the most of its quota remaining.', () => {
  const entries = filled()
  for (let n = 0; n < 8; n++) entries.get(`${n}`)!.left = n === 5 ? 0.5 : 0.1
  entries.getOrAdd('new', 0)
  expect(entries.get('5')).toBeUndefined()
  expect(['0', '4', '6', '9999', 'new'].every((key) => entries.get(key))).toBe(true)
})

test('An eviction prefers an expired entry.', () => {
  const entries = filled()
  Object.assign(entries.get('3')!, { until: 500, left: 0 })
  entries.getOrAdd('new', 500)
  expect(entries.get('3')).toBeUndefined()
})

test('A value of distinct counts as eight numbers: it is a text besides its time.', () => {
  const entries = new LocalEntries(inTurn())
  const stateOf = (size: number) => ({
    time: 0,
    numbers: Array<number>(size).fill(0),
    values: Array<string>(size).fill('a-digest'),
  })
  entries.setState(entries.getOrAdd('a', 0), stateOf(125_000), 1000)
  expect(entries.isFull).toBe(false)
  entries.setState(entries.getOrAdd('b', 0), stateOf(1), 1000)
  expect(entries.isFull).toBe(true)
  entries.setState(entries.get('b')!, undefined, 0)
  expect(entries.isFull).toBe(false)
})

test('Entries are evicted until their states have at most a million numbers.', () => {
  const entries = new LocalEntries(inTurn())
  const numbers = Array<number>(400_000).fill(0)
  for (const key of ['a', 'b', 'c']) {
    entries.setState(entries.getOrAdd(key, 0), { time: 0, numbers }, 1000)
  }
  expect(entries.isFull).toBe(true)
  entries.trim(0)
  expect(entries.isFull).toBe(false)
  expect(['a', 'b', 'c'].filter((key) => entries.get(key))).toHaveLength(2)
  entries.setState(entries.get('c') ?? entries.get('a')!, undefined, 0)
  expect(entries.isFull).toBe(false)
})
