import { describe, expect, test } from 'vitest'
import { figuresOf, recoveredAt, type Span } from '../chaos/figures.ts'
import type { Sample } from '../chaos/load.ts'
import { LIMIT, SHARE } from '../chaos/policies.ts'
import { misses, table } from '../chaos/report.ts'
import type { StallMeter } from '../chaos/stall.ts'

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

describe('the figures of chaos', () => {
  test('find nothing wrong where nothing is', async () => {
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
      '1 answers were 5xx',
    ],
    ['no answer', [...many(1), ...many(2, { status: 0 })], {}, '2 answers were 5xx, or none'],
    ['a 503 of the origin', many(1, { mode: 'deny', status: 503 }), {}, '1 answers were 5xx'],
    ['a slow answer', many(1, { done: 500 }), {}, 'an answer took 400 ms'],
    ['one too many', many(LIMIT + 1), {}, 'hot keys admitted 1 beyond their limit'],
    [
      'one too many of an isolate',
      [...many(1), ...many(SHARE + 1, { hotKey: 'x', decided: false, fallback: 'local' })],
      {},
      'isolates admitted 1 beyond their share',
    ],
    ['nothing to hold', many(5, { hotKey: undefined }), {}, 'no hot key'],
    ['nothing decided', many(5, { decided: false, fallback: 'allow' }), {}, 'no hot key'],
    [
      'a late recovery',
      many(200, { sent: 4000 }),
      { healed: 1000, end: 9000 },
      'recovered in 3.00',
    ],
    ['no recovery', many(30, { decided: false }), { healed: 50 }, 'recovered in Infinity'],
  ])('find %s', async (_, samples, more, message) => {
    expect((await missed(samples, more)).join()).toContain(message)
  })

  test('take off what the machine stood still while a slow answer was under way', async () => {
    const stall = { ...still, between: async () => 60 }
    expect(await missed(many(1, { done: 500 }), {}, stall)).toEqual([])
    expect(await missed(many(1, { done: 520 }), {}, stall)).toHaveLength(1)
  })

  test('follow a key into the next phase, where its life ends', async () => {
    const late = [...many(LIMIT), ...many(1, { sent: 1500, done: 1510 })]
    expect(await figures(late)).toMatchObject({ requests: LIMIT, overAdmitted: 1 })
  })

  test('leave out a key that a crash cut in two', async () => {
    const cut = [...many(LIMIT), ...many(LIMIT, { sent: 600, done: 610 })]
    expect(await figures(cut, { lost: 500 })).toMatchObject({ keys: 0, overAdmitted: 0 })
    expect(await figures(many(LIMIT + 1, { sent: 600, done: 610 }), { lost: 500 })).toMatchObject({
      keys: 1,
      overAdmitted: 1,
    })
  })

  test('call it a recovery when Redis decides twenty in a row', () => {
    const at = (sent: number, decided = true) => sample({ sent, decided })
    const times = (from: number) => Array.from({ length: 20 }, (_, index) => at(from + index))
    expect(recoveredAt(times(100), 50)).toBe(100)
    expect(recoveredAt(times(100).slice(1), 50)).toBeUndefined()
    expect(recoveredAt([...times(100).slice(1), at(120, false), ...times(130)], 50)).toBe(130)
    expect(recoveredAt(times(100), 105)).toBeUndefined()
  })

  test('miss the rate, and are told in a table', async () => {
    const report = { phases: [await figures(many(3), { healed: 0 })], rate: 150, logs: [] }
    expect(misses(report)).toContain('only 150 requests a second, not 200')
    const [head, , row] = table(report).split('\n')
    expect(head!.split('|')).toHaveLength(row!.split('|').length)
    expect(row).toContain('| a | 3 | 0 |')
  })
})
