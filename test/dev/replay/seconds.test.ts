import { expect, test } from 'vitest'
import { exactTimes, type Seconds, wholeSeconds } from '../../../dev/replay/decide/seconds.ts'
import { lineAt, NOON } from '../../support/replay.ts'

/** The times of lines after noon, from lists of ms after noon. */
const times = (seconds: Seconds, lists: number[][]) =>
  [...lists.map((list) => seconds.add(list.map((ms) => lineAt(ms)))), seconds.rest()].map((timed) =>
    timed.map(({ spread, burst }) => [spread - NOON, burst - NOON]),
  )

test('The lines of a second are spread over it, across lists.', () => {
  expect(times(wholeSeconds(), [[0, 0], [0, 1000], [1000], [5000]])).toEqual([
    [],
    [
      [0, 0],
      [333, 0],
      [666, 0],
    ],
    [],
    [
      [1000, 1000],
      [1500, 1000],
    ],
    [[5000, 5000]],
  ])
})

test('A second with more lines than are kept gets half of what is left of it for each part.', () => {
  expect(times(wholeSeconds(2), [[0, 0, 0, 0, 0, 1000]])).toEqual([
    [
      [0, 0],
      [250, 0],
      [500, 0],
      [625, 0],
      [750, 0],
    ],
    [[1000, 1000]],
  ])
})

test('Lines with ms are decided at their whole ms, at once.', () => {
  expect(times(exactTimes(), [[0.7, 12.2], [1000]])).toEqual([
    [
      [0, 0],
      [12, 12],
    ],
    [[1000, 1000]],
    [],
  ])
})
