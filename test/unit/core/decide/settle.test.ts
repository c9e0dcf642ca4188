/** What a response keeps of a charge, as requests to the store. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { prepare } from '../../../../src/core/decide/decide.ts'
import type { PolicyLimit } from '../../../../src/core/decide/limit.ts'
import {
  chargeOf,
  correctionsOf,
  type PolicyRequest,
  tellIsolate,
} from '../../../../src/core/decide/settle.ts'

function limitWith(options: Partial<PolicyOptions>): PolicyLimit {
  const [policy] = parseConfig({
    policies: [{ name: 'a', limit: 9, window: '1m', ...options }],
  }).policies
  return { terms: policy!, partitionKey: [], cost: 3, subject: 's' }
}

const priced = { cost: { response: 'x-price' } }
test.each<[string, Partial<PolicyOptions>, number, string, number | undefined, unknown[]]>([
  ['a status that counts', { countOnly: '4xx' }, 401, '', undefined, []],
  ['the last status that counts', { countOnly: '400-404' }, 404, '', undefined, []],
  ['a status that does not count', { countOnly: '4xx' }, 200, '', undefined, ['refund', 3, 1000]],
  ['a lower price', priced, 200, '1', undefined, ['refund', 2, 1000]],
  ['a higher price', priced, 200, '9', undefined, []],
  ['a malformed price', priced, 200, '-1', undefined, []],
  ['the end of a slot', { algorithm: 'concurrency' }, 200, '', undefined, ['refund', 3, 1000]],
  ['a lower cost in its body', {}, 200, '', 1, ['refund', 2, 1000]],
  ['a higher cost in its body', {}, 200, '', 8, ['debt', 5, 1000]],
])('A response with %s settles its charge.', (_, options, status, price, metered, expected) => {
  const limit = limitWith(options)
  const response = { status, headers: new Headers({ 'x-price': price }) }
  const kept = new Map(metered === undefined ? [] : [[limit, metered]])
  const requests = correctionsOf(new Map([[limit, { decidedAt: 1000 }]]), response, kept)
  expect(
    requests.flatMap(({ mode, limits, ...rest }) => [
      mode,
      limits[0]!.cost,
      Object.values(rest)[0],
    ]),
  ).toEqual(expected)
})

test.each<[boolean, Partial<PolicyOptions>[]]>([
  [true, [{ countOnly: '4xx' }, {}]],
  [true, [{}, priced]],
  [false, [{}, {}]],
])(
  'The charges of a request depend on the response (%s) if those of one policy do.',
  (settles, all) => {
    const policies = all.map((options) => limitWith(options))
    const pending = prepare({ matched: { policies } }, { nameSubject: () => 's' })
    expect(pending).toMatchObject({ settles })
  },
)

test('Only what may be charged is settled: units of the database, of the isolate, or of a late reply.', () => {
  const state = { allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, nextAfterMs: 0 }
  const late = Promise.resolve(5)
  expect(chargeOf(state, 1)).toEqual({ decidedAt: 1 })
  expect(chargeOf({ ...state, decidedAt: 2 }, 1)).toEqual({ decidedAt: 2 })
  expect(chargeOf({ ...state, allowed: false }, 1)).toBeUndefined()
  expect(chargeOf({ ...state, fallback: { by: 'allow' } }, 1)).toBeUndefined()
  for (const fallback of [{ by: 'local', localAt: 0 } as const, { by: 'allow', late } as const]) {
    expect(chargeOf({ ...state, fallback }, 1)).toEqual({ decidedAt: 1, fallback })
  }
})

const slots = { algorithm: 'concurrency' } as const
test.each<[mode: string, Partial<PolicyOptions>, forgets: boolean, wakes: boolean]>([
  ['refund', {}, true, true],
  ['refund', slots, false, true], // the isolate remembers no refusal of it
  ['unban', slots, true, true],
  ['reset', {}, true, true],
  ['override', {}, true, true],
  ['restore', {}, true, true],
  ['leave', {}, true, true],
  ['ban', {}, true, true], // it may replace a longer one
  ['debt', {}, true, true], // who waits has a later turn
  ['debt', slots, false, true],
  ['peek', {}, false, false],
])(
  'After %s of a limit with %j the isolate forgets cached refusals: %s, and wakes a request that waits: %s.',
  (mode, options, forgets, wakes) => {
    const limits = [limitWith(options)]
    const [forgotten, woken]: [string[], unknown[]] = [[], []]
    tellIsolate([{ mode, limits } as PolicyRequest], {
      denialCache: { forget: (_, subjects) => void forgotten.push(...subjects) },
      waiting: { wake: (given) => void woken.push(...given) },
    })
    expect(forgotten).toEqual(forgets ? ['s'] : [])
    expect(woken).toEqual(wakes ? limits : [])
  },
)
