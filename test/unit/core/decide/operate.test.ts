/** Operations of the decision API on limits: what they send to the store, and what they report. */
import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { refund, type Statuses } from '../../../../src/core/decide/operate.ts'
import type { LimiterParts } from '../../../../src/core/decide/question.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import type { Match } from '../../../../src/core/program/match.ts'

/** Refunds a request without a policy and one with `options`. */
async function refunded(options: Partial<PolicyOptions>, slot?: string, error?: StoreError) {
  const [policy] = parseConfig({
    policies: [{ name: 'a', limit: 5, window: '1m', ...options }],
  }).policies
  const matches: Match[] = [{ terms: policy!, partitionKey: [['ip', 'a']], cost: 0 }]
  const sent: StoreRequest[] = []
  const seen = { errors: [] as string[], forgotten: 0 }
  const local = createLocalStore()
  const parts: LimiterParts = {
    store: {
      ...local,
      async decideEach(lists) {
        sent.push(...lists.flat())
        return error ? [error] : local.decideEach(lists, {})
      },
    },
    nameSubject: () => 's',
    denialCache: {
      find: () => undefined,
      keep() {},
      forget() {
        seen.forgotten += 1
      },
    },
    onStoreError: ({ code }) => void seen.errors.push(code),
  }
  const questions = [[], matches].map((policies) => ({
    matched: { policies },
    ...(slot && { slot }),
  }))
  const result = await refund(questions, parts, { waitUntil: () => {} }).catch(
    (error: StoreError) => error,
  )
  return { ...seen, result, sent: sent.map(({ mode, limits }) => [mode, limits[0]!.cost]) }
}

test('A slot is released by its id whatever the request costs, and without the id it stays.', async () => {
  const slots = { algorithm: 'concurrency' } as const
  expect((await refunded(slots, 'id')).sent).toEqual([['refund', 1]])
  expect((await refunded(slots)).sent).toEqual([['peek', 0]])
})

test('Each question gets its own limits, and the isolate forgets cached refusals.', async () => {
  const { result, sent, forgotten, errors } = await refunded({})
  expect(sent).toEqual([['refund', 0]])
  expect((result as Statuses).statuses).toMatchObject([
    { limits: [] },
    { limits: [{ policy: 'a' }] },
  ])
  expect([forgotten, errors]).toEqual([1, []])
})

test.each([
  ['idempotency-conflict', []],
  ['timeout', ['timeout']],
] as const)('After the error %s the errors of the store are %j.', async (code, logged) => {
  const { result, forgotten, errors } = await refunded({}, undefined, new StoreError(code))
  expect(result).toMatchObject({ code })
  expect([forgotten, errors]).toEqual([1, logged])
})
