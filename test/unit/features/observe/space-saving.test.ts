/** Laws of the sketch, against exact counts of skewed streams. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SpaceSaving } from '../../../../src/features/observe/space-saving.ts'
import { isLong } from '../../../support/long.ts'

interface Stream {
  values: number
  skew: number
  length: number
  seed: number
}

/** A stream in which the n-th value is drawn with a weight of 1 / n^skew (Zipf). */
function streamOf({ values, skew, length, seed }: Stream): string[] {
  const sums: number[] = []
  let sum = 0
  for (let n = 1; n <= values; n++) {
    sum += n ** -skew
    sums.push(sum)
  }
  const random = mulberry(seed)
  return Array.from({ length }, () => {
    const point = random() * sum
    let [low, high] = [0, values - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle]! < point) low = middle + 1
      else high = middle
    }
    return `client-${low}`
  })
}

const zipf = fc
  .record<Stream>({
    values: fc.integer({ min: 1, max: 5_000 }),
    skew: fc.double({ min: 0.5, max: 2, noNaN: true }),
    length: fc.integer({ min: 0, max: 20_000 }),
    seed: fc.integer(),
  })
  .map(streamOf)

/** Numbers from 0 to 1 (https://github.com/bryc/code/blob/master/jshash/PRNGs.md#mulberry32). */
function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

function counted(stream: string[]) {
  const sketch = new SpaceSaving()
  const exact = new Map<string, number>()
  for (const value of stream) {
    sketch.add(value)
    exact.set(value, (exact.get(value) ?? 0) + 1)
  }
  return { entries: sketch.list(), exact }
}

test('The counts of any stream keep the bounds of the algorithm, and add up to its length.', () => {
  fc.assert(
    fc.property(zipf, (stream) => {
      const { entries, exact } = counted(stream)
      for (const { subject, refusals, error } of entries) {
        const truth = exact.get(subject)!
        expect(refusals).toBeGreaterThanOrEqual(truth)
        expect(refusals - error).toBeLessThanOrEqual(truth)
        expect(error).toBeLessThanOrEqual(stream.length / 64)
      }
      expect(entries.length).toBe(Math.min(64, exact.size))
      expect(entries.reduce((sum, { refusals }) => sum + refusals, 0)).toBe(stream.length)
      const found = new Set(entries.map(({ subject }) => subject))
      const frequent = [...exact].filter(([, count]) => count > stream.length / 64)
      expect(frequent.filter(([subject]) => !found.has(subject))).toEqual([])
    }),
    { numRuns: isLong ? 100 : 30 },
  )
})

test('The ten entries with the most refusals are the true ten most frequent values of a skewed stream.', () => {
  for (let seed = 0; seed < (isLong ? 20 : 4); seed++) {
    const { entries, exact } = counted(streamOf({ values: 5_000, skew: 1.5, length: 50_000, seed }))
    const truth = [...exact].sort(([, one], [, other]) => other - one)
    const found = entries.sort((one, other) => other.refusals - one.refusals)
    expect(new Set(found.slice(0, 10).map(({ subject }) => subject))).toEqual(
      new Set(truth.slice(0, 10).map(([subject]) => subject)),
    )
  }
})
