import { glob, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { replaceDate, runBy, TestClock } from '../../../src/testing/clock.ts'

const DAY_MS = 86_400_000
const Real = Date

test('The clock adds up its advances.', () => {
  const clock = new TestClock()
  clock.advance('1h')
  clock.advance(500)
  clock.advance('1.5d')
  expect(clock.offsetMs).toBe(3_600_500 + 1.5 * DAY_MS)
  expect(Math.abs(clock.now() - Date.now() - clock.offsetMs)).toBeLessThan(100)
})

test.each([
  ['soon'],
  ['1 year'],
  ['-1h'],
  [''],
  [-1],
  [0],
  [1.5],
  [Number.NaN],
  [undefined],
  [2 ** 52],
])('An advance by %j is refused, and the clock stays.', (duration) => {
  const clock = new TestClock()
  expect(() => clock.advance(duration as never)).toThrow(
    /^advance: expected a duration such as '1h', or a whole number of milliseconds of at least 1, got .*\. The clock cannot move backwards\.$/,
  )
  expect(clock.offsetMs).toBe(0)
})

test('The replaced Date follows the clock within its context only, also after awaiting.', async () => {
  const undo = replaceDate()
  try {
    const [one, two] = [new TestClock(), new TestClock()]
    one.advance('1d')
    two.advance('2d')
    const shift = async () => {
      await sleep(5)
      return Math.round((Date.now() - Real.now()) / DAY_MS)
    }
    expect(await Promise.all([runBy(one, shift), runBy(two, shift), shift()])).toEqual([1, 2, 0])
    const late = runBy(one, () => sleep(10).then(() => new Date()))
    one.advance('1d')
    expect(Math.round(((await late).valueOf() - Real.now()) / DAY_MS)).toBe(2)
  } finally {
    undo()
  }
})

test('The replaced Date is otherwise the same as Date.', () => {
  const undo = replaceDate()
  try {
    const clock = new TestClock()
    clock.advance('365d')
    runBy(clock, () => {
      expect(new Date(5).valueOf()).toBe(5)
      expect(new Date(2026, 1, 3).getDate()).toBe(3)
      expect(Date.UTC(2026)).toBe(Real.UTC(2026))
      expect(new Date() instanceof Real && new Real() instanceof Date).toBe(true)
      expect(Math.abs(Real.parse(Date()) - clock.now())).toBeLessThan(2000)
      class Later extends Date {
        later = true
      }
      expect(new Later()).toMatchObject({ later: true })
      expect(new Later().valueOf()).toBeGreaterThan(Real.now() + 364 * DAY_MS)
    })
  } finally {
    undo()
  }
})

test('Date is restored after the last replacement is undone.', () => {
  const [first, second] = [replaceDate(), replaceDate()]
  expect(Date).not.toBe(Real)
  first()
  first()
  expect(Date).not.toBe(Real)
  second()
  expect(Date).toBe(Real)
})

test('A Date that other code has replaced meanwhile stays.', () => {
  const undo = replaceDate()
  class Other extends Real {}
  globalThis.Date = Other as DateConstructor
  undo()
  expect(Date).toBe(Other)
  globalThis.Date = Real
})

test('No file of src keeps Date.now in a variable, which would ignore the clock of a test.', async () => {
  const src = fileURLToPath(new URL('../../../src/', import.meta.url))
  const found: string[] = []
  let files = 0
  for await (const file of glob('**/*.ts', { cwd: src, exclude: ['testing'] })) {
    files += 1
    const code = (await readFile(src + file, 'utf8')).replace(/^ *(\/?\*|\/\/).*$/gm, '')
    if (/\bDate\.now\b(?!\()/.test(code)) found.push(file)
  }
  expect(files).toBeGreaterThan(80)
  expect(found).toEqual([])
})
