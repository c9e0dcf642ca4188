import { expect, test } from 'vitest'
import { exactTimes, type Seconds, wholeSeconds } from '../../../cli/replay/decide/seconds.ts'
import { lineAt, NOON } from '../../support/replay.ts'

/** The times of lines as "spread/burst" in ms after noon, one text for each list of ms after noon, and one for the rest. */
const times = (seconds: Seconds, lists: number[][]) =>
  [...lists.map((list) => seconds.add(list.map((ms) => lineAt(ms)))), seconds.rest()].map((timed) =>
    timed.map(({ spread, burst }) => `${spread - NOON}/${burst - NOON}`).join(' '),
  )

test.each<[string, Seconds, number[][], string[]]>([
  [
    'The lines of a second are spread over it, across lists.',
    wholeSeconds(),
    [[0, 0], [0, 1000], [1000], [5000]],
    ['', '0/0 333/0 666/0', '', '1000/1000 1500/1000', '5000/5000'],
  ],
  [
    'A second with more lines than are kept gets half of what is left of it for each part.',
    wholeSeconds(2),
    [[0, 0, 0, 0, 0, 1000]],
    ['0/0 250/0 500/0 625/0 750/0', '1000/1000'],
  ],
  [
    'Lines with ms are decided at their whole ms, at once.',
    exactTimes(),
    [[0.7, 12.2], [1000]],
    ['0/0 12/12', '1000/1000', ''],
  ],
])('%s', (_, seconds, lists, expected) => {
  expect(times(seconds, lists)).toEqual(expected)
})
