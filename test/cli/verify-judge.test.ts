/** What `sluice verify` concludes from the answers of a deployment. */
import { expect, test } from 'vitest'
import type { Answer, Client } from '../../cli/verify/client.ts'
import type { Plan, Round } from '../../cli/verify/round.ts'
import { checkShared } from '../../cli/verify/shared.ts'
import { checkWait } from '../../cli/verify/wait.ts'
import { parseConfig } from '../../src/core/config/parse.ts'

const { policies } = parseConfig({ policies: [{ name: 'all', limit: 5, window: '1h' }] })
const plan: Plan = {
  policy: policies[0]!,
  request: { method: 'GET', path: '/', headers: {} },
  cost: 1,
  states: false,
  limit: 5,
  expected: 5,
  together: false,
}
const WAIT_MS = 300
/** The time of the refusal by the clock of the store. */
const AT = 1_700_000_000_000

/** An answer of the store, some time after the refusal. */
function answer(allowed: boolean, afterMs: number): Answer {
  const state = { allowed, remaining: 0, retryAfterMs: WAIT_MS }
  return {
    ...{ status: 429, headers: new Headers({ 'retry-after': '1' }), body: '', ms: 1 },
    receivedAt: performance.now(),
    isCached: false,
    decision: {
      ...{ count: 1, allowed, reason: 'limit' as never, by: 'store', now: AT },
      ...(!allowed && { retryAfterMs: WAIT_MS, retryAfter: '1', refusedBy: ['all'] }),
      decidedAt: AT + afterMs,
      policy: { applies: true, mode: 'enforce', limit: 5, cost: 1, state },
    },
  }
}

const clientOf = (next: () => Answer) => ({ send: async () => next() }) as unknown as Client

test.each([
  ['is exact', [false, true], { text: 'Retry-After 1 s was exact' }],
  ['is too long', [true], { text: 'a request passed 100 ms before Retry-After', isWrong: true }],
  [
    'is too short',
    [false, false],
    { text: `a request after Retry-After is refused for another ${WAIT_MS} ms`, isWrong: true },
  ],
])('A wait that %s.', async (_, allowed, result) => {
  const refusal = answer(false, 0)
  const round: Round = {
    ...{
      nonce: 'a-nonce-of-this-test',
      answers: [refusal],
      passed: 5,
      tookMs: 5,
      ended: 0,
      refilled: 0,
    },
    refusal,
  }
  const answers = [answer(allowed[0]!, WAIT_MS - 100), answer(allowed[1] ?? true, WAIT_MS)]
  expect(
    await checkWait(
      plan,
      round,
      clientOf(() => answers.shift()!),
      1_000,
    ),
  ).toEqual(result)
})

test.each([
  [5, 'ok', '20 connections share one quota'],
  [6, 'problem', '20 connections do not share one quota: 6 requests passed, and all holds 5'],
])('%i of 20 requests at once pass a quota of 5.', async (passing, status, text) => {
  let count = 0
  const client = clientOf(() => answer(++count <= passing, 0))
  const [found] = await checkShared([plan], client)
  expect(found).toMatchObject({ status, text: expect.stringContaining(text) })
})
