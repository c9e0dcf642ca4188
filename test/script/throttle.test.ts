import { expect, test } from 'vitest'
import { ask, rowOf, start } from '../support/ask.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

type Throttle = [maxBurst: number, count: number, periodMs: number]
type Step = [
  after: number,
  quantity: number,
  remaining: number,
  reset: number,
  /** 0 if the request passed, and null if it can never pass. */
  retry: number | null,
]

/** Replies of redis-cell to `CL.THROTTLE key max_burst count period quantity`, where burst = max_burst + 1. Times are in ms. */
const sequences: [claim: string, terms: Throttle, steps: Step[]][] = [
  [
    'the sequence published by redis-cell',
    [4, 1, 1000],
    [
      [0, 6, 5, 0, null],
      [0, 1, 4, 1000, 0],
      [0, 1, 3, 2000, 0],
      [0, 1, 2, 3000, 0],
      [0, 1, 1, 4000, 0],
      [0, 1, 0, 5000, 0],
      [0, 1, 0, 5000, 1000],
      [3000, 1, 2, 3000, 0],
      [3100, 1, 1, 3900, 0],
      [4000, 1, 1, 4000, 0],
      [8000, 1, 4, 1000, 0],
      [9500, 1, 4, 1000, 0],
      [9500, 0, 4, 1000, 0],
      [9500, 2, 2, 3000, 0],
      [9500, 5, 2, 3000, 3000],
    ],
  ],
  [
    'CL.THROTTLE key 15 30 60, even for a quantity of 0 or above the capacity',
    [15, 30, 60_000],
    [
      [0, 0, 16, 0, 0],
      [0, 17, 16, 0, null],
      [0, 1, 15, 2000, 0],
      [1, 1, 14, 3999, 0],
      [1, 14, 0, 31_999, 0],
      [1, 1, 0, 31_999, 1999],
      [1001, 1, 0, 30_999, 999],
      [1999, 1, 0, 30_001, 1],
      [2000, 1, 0, 32_000, 0],
      [2000, 17, 0, 32_000, null],
      [34_000, 16, 0, 32_000, 0],
    ],
  ],
]

test.each(sequences)(
  'A token bucket reproduces %s.',
  async (_, [maxBurst, limit, windowMs], steps) => {
    const row = rowOf({ algorithm: 'token-bucket', limit, windowMs, burst: maxBurst + 1 })
    for (const [after, cost, remaining, resetAfterMs, retryAfterMs] of steps) {
      const state = await ask(server, 'take', { ...row, cost }, start + after)
      const expected = { allowed: retryAfterMs === 0, remaining, resetAfterMs, retryAfterMs }
      expect(state, `${cost} after ${after}`).toMatchObject(expected)
    }
  },
)
