import { describe, expect, test } from 'vitest'
import { figuresOf, recoveredAt, type Span } from '../../../tools/bench/chaos/figures.ts'
import type { Sample } from '../../../tools/bench/chaos/load.ts'
import { LIMIT, SHARE } from '../../../tools/bench/chaos/policies.ts'
import { misses, table } from '../../../tools/bench/chaos/report.ts'
import type { StallMeter } from '../../../tools/bench/chaos/stall.ts'

const still: StallMeter = { between: async () => 0, stop: async () => {} }
const span: Span = { name: 'a', start: 0, healed: undefined, end: 1000, lost: undefined }
const sample = (more: Partial<Sample> = {}): Sample => ({
  mode: 'allow',
  hotKey: '/allow/token-bucket hot-1',
  sent: 100,
  done: 110,
  status: 200,
  decided: true,
  fallback: undefined,
  ...more,
})
const many = (count: number, more: Partial<Sample> = {}) =>
  Array.from({ length: count }, (_, index) => sample({ sent: 100 + index, ...more }))
const figures = (samples: Sample[], more: Partial<Span> = {}, stall = still) =>
  figuresOf('a', [{ ...span, ...more }], samples, stall)
const missed = async (...args: Parameters<typeof figures>) =>
  misses({ phases: [await figures(...args)], rate: 250, logs: [] })

describe('the results of a chaos run', () => {
  test('A run without failures misses no target.', async () => {
    const fine = [
      ...many(LIMIT),
      ...many(5, { status: 429 }),
      ...many(3, { decided: false, fallback: 'allow' }),
      ...many(SHARE, { mode: 'local', hotKey: 'x', decided: false, fallback: 'local' }),
      ...many(3, {
        mode: 'deny',
        hotKey: undefined,
        status: 503,
        decided: false,
        fallback: 'deny',
      }),
    ]
    expect(await missed(fine)).toEqual([])
    expect(await figures(fine)).toMatchObject({ requests: fine.length, fallback: 3 + SHARE + 3 })
  })

  test.each<[string, Sample[], Partial<Span>, string]>([
    [
      'a 5xx',
      [...many(1), ...many(1, { status: 503, fallback: 'deny' })],
      {},
      '1 requests got no response or an unexpected 5xx',
    ],
    [
      'a missing response',
      [...many(1), ...many(2, { status: 0 })],
      {},
      '2 requests got no response',
    ],
    ['a 503 of the origin', many(1, { mode: 'deny', status: 503 }), {}, 'an unexpected 5xx'],
    ['a slow response', many(1, { done: 500 }), {}, 'a response took 400 ms'],
    [
      'a request beyond the limit',
      many(LIMIT + 1),
      {},
      'hot keys admitted 1 requests beyond their limit',
    ],
    [
      'a request beyond the share of an isolate',
      [...many(1), ...many(SHARE + 1, { hotKey: 'x', decided: false, fallback: 'local' })],
      {},
      'isolates admitted 1 requests beyond their share',
    ],
    ['missing requests of hot keys', many(5, { hotKey: undefined }), {}, 'no hot key'],
    [
      'missing decisions by Redis',
      many(5, { decided: false, fallback: 'allow' }),
      {},
      'no hot key',
    ],
    [
      'a late recovery',
      many(200, { sent: 4000 }),
      { healed: 1000, end: 9000 },
      'the recovery took 3.00',
    ],
    [
      'a missing recovery',
      many(30, { decided: false }),
      { healed: 50 },
      'the recovery took Infinity',
    ],
  ])('A run misses a target because of %s.', async (_, samples, more, message) => {
    expect((await missed(samples, more)).join()).toContain(message)
  })

  test('The time for which the machine was stalled is subtracted from a slow response.', async () => {
    const stall = { ...still, between: async () => 60 }
    expect(await missed(many(1, { done: 500 }), {}, stall)).toEqual([])
    expect(await missed(many(1, { done: 520 }), {}, stall)).toHaveLength(1)
  })

  test('A key that is in use into the next phase counts with all its requests.', async () => {
    const late = [...many(LIMIT), ...many(1, { sent: 1500, done: 1510 })]
    expect(await figures(late)).toMatchObject({ requests: LIMIT, overAdmitted: 1 })
  })

  test('A key that is in use before and after a crash of Redis is not counted.', async () => {
    const cut = [...many(LIMIT), ...many(LIMIT, { sent: 600, done: 610 })]
    expect(await figures(cut, { lost: 500 })).toMatchObject({ keys: 0, overAdmitted: 0 })
    expect(await figures(many(LIMIT + 1, { sent: 600, done: 610 }), { lost: 500 })).toMatchObject({
      keys: 1,
      overAdmitted: 1,
    })
  })

  test('Twenty consecutive decisions by Redis count as a recovery.', () => {
    const at = (sent: number, decided = true) => sample({ sent, decided })
    const times = (from: number) => Array.from({ length: 20 }, (_, index) => at(from + index))
    expect(recoveredAt(times(100), 50)).toBe(100)
    expect(recoveredAt(times(100).slice(1), 50)).toBeUndefined()
    expect(recoveredAt([...times(100).slice(1), at(120, false), ...times(130)], 50)).toBe(130)
    expect(recoveredAt(times(100), 105)).toBeUndefined()
  })

  test('A low request rate misses its target, and the table has a cell for each column.', async () => {
    const report = { phases: [await figures(many(3), { healed: 0 })], rate: 150, logs: [] }
    expect(misses(report)).toContain('the load had 150 requests per second; the minimum is 200')
    const [head, , row] = table(report).split('\n')
    expect(head!.split('|')).toHaveLength(row!.split('|').length)
    expect(row).toContain('| a | 3 | 0 |')
  })
})
