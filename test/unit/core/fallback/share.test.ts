import { describe, expect, test } from 'vitest'
import type { Terms } from '../../../../src/core/connection/store.ts'
import { cutState, shareOf } from '../../../../src/core/fallback/share.ts'

const terms: Terms = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 10,
  windowMs: 1000,
  burst: 4,
  align: 'clock',
  localShare: 0.5,
}

describe('the share of a limit', () => {
  test('A share is in whole units, and at least one.', () => {
    const shares = [0.5, 0.39, 0.01].map((localShare) => shareOf({ ...terms, localShare }, 1).share)
    expect(shares.map(({ limit, burst }) => [limit, burst])).toEqual([
      [5, 2],
      [3, 1],
      [1, 1],
    ])
  })

  test('A cost that fits the whole limit is reduced to fit the share, and a larger cost is not.', () => {
    const costs = [1, 5, 6, 10, 11]
    expect(costs.map((cost) => shareOf(terms, cost).cost)).toEqual([1, 5, 5, 5, 11])
    const bucket: Terms = { ...terms, algorithm: 'token-bucket' }
    expect(costs.map((cost) => shareOf(bucket, cost).cost)).toEqual([1, 5, 6, 10, 11])
    expect([1, 3, 4].map((cost) => shareOf(bucket, cost).cost)).toEqual([1, 2, 2])
  })
})

describe('the state of a share', () => {
  const cut = (algorithm: Terms['algorithm'], numbers: number[]) => {
    const { share } = shareOf({ ...terms, algorithm }, 1)
    return cutState(algorithm, { time: 7, numbers }, terms, share)?.numbers
  }

  test.each<[Terms['algorithm'], number[], number[]]>([
    ['fixed-window', [8], [3]],
    ['fixed-window', [2], [0]],
    ['sliding-window', [4, 7], [4, 2]],
    ['sliding-window', [4, 3], [2, 0]],
    ['sliding-log', [1, 2, 3, 4, 5, 6, 7], [6, 7]],
    ['sliding-log', [1, 2], []],
    ['token-bucket', [3500], [1500]],
    ['token-bucket', [500], [0]],
  ])(
    'The state of a whole %s with the numbers %j becomes %j for its share.',
    (algorithm, whole, expected) => {
      expect(cut(algorithm, whole)).toEqual(expected)
    },
  )

  test('The state does not change if the share is the whole limit.', () => {
    const state = { time: 7, numbers: [8] }
    const { share } = shareOf({ ...terms, localShare: 1 }, 1)
    expect(cutState('fixed-window', state, terms, share)).toBe(state)
  })
})
