/** What `sluice verify` concludes from the answers of a deployment. */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Answer, Client } from '../../cli/verify/client.ts'
import { type Plan, playRound, type Round, windowsEnded } from '../../cli/verify/round.ts'
import { checkShared } from '../../cli/verify/shared.ts'
import { checkSpellings } from '../../cli/verify/spelling.ts'
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

/** An answer that the store has decided at a time. */
const decidedAt = (time: number): Answer => {
  const one = answer(true, 0)
  return { ...one, decision: { ...one.decision!, decidedAt: time } }
}

const MIDNIGHT = Date.parse('2026-03-29T22:00:00Z') // in Berlin, the day after its clocks went forward
test.each([
  [{ window: 'day', timeZone: 'Europe/Berlin' }, -1, 1, 1],
  [{ window: 'day', timeZone: 'Europe/Berlin' }, -2, -1, 0],
  [{ window: 'day' }, -1, 1, 0],
  [{ window: 'week', timeZone: 'Europe/Berlin' }, -1, 1, 1],
  [{ window: 'month', timeZone: 'Europe/Berlin' }, -1, 1, 0],
  [{ window: '10s', align: 'clock' }, -1, 1, 1],
  [{ window: '10s', align: 'clock' }, -1, 25_000, 3],
  [{ window: '10s', align: 'clock' }, 0, 9_999, 0],
  [{ window: '10s' }, -1, 25_000, 0],
])('With %j, from %i to %i ms, %i windows end by the clock.', (fields, from, to, count) => {
  const written = { name: 'all', algorithm: 'fixed-window', limit: 5, ...fields }
  const { policies } = parseConfig({ policies: [written as never] })
  const answers = [from, to].map((ms) => decidedAt(MIDNIGHT + ms))
  expect(windowsEnded(policies[0]!, answers)).toBe(count)
})

test('A window of the calendar that ends during a round explains what passes.', async () => {
  const written = { name: 'all', algorithm: 'fixed-window', limit: 5, window: 'day' } as const
  const { policies } = parseConfig({ policies: [written] })
  const midnight = Date.parse('2026-03-29T00:00:00Z')
  let sent = 0
  const client = clientOf(() => decidedAt(midnight - 30 + 10 * sent++))
  const round = await playRound(client, { ...plan, policy: policies[0]! })
  expect(round).toMatchObject({ passed: 6, ended: 1, refilled: 5, refusal: undefined })
})

test('A quota that refills faster than requests are answered ends the round.', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { policies } = parseConfig({ policies: [{ name: 'all', limit: 5, window: '1s' }] })
  let sent = 0
  const client = clientOf(() => {
    vi.advanceTimersByTime(1_000)
    return answer(++sent < 100, 0)
  })
  const round = await playRound(client, { ...plan, policy: policies[0]! })
  expect(round).toMatchObject({ passed: 18, refusal: undefined })
})

const login = parseConfig({
  policies: [{ name: 'all', limit: 5, window: '1h', match: { path: '/login' } }],
}).policies[0]!
test.each([
  [308, undefined],
  [404, undefined],
  [200, { text: expect.stringContaining('is answered without Sluice'), isWrong: true }],
  [401, { text: expect.stringContaining('is answered without Sluice'), isWrong: true }],
])('Another spelling that is answered %i without Sluice.', async (status, result) => {
  const refusal = answer(false, 0)
  refusal.decision!.retryAfterMs = 3_600_000
  const round = { nonce: 'a-nonce-of-this-test', refusal } as Round
  const client = clientOf(() => ({ ...answer(true, 0), status, decision: undefined }))
  const policy = login
  const match = async () => [{ terms: policy, partitionKey: [['ip', 'x']], cost: 1 }] as never
  const request = { method: 'GET', path: '/login', headers: {} }
  expect(await checkSpellings({ ...plan, policy, request }, round, { client, match })).toEqual(
    result,
  )
})

test.each([
  ['is longer, by jitter', '2', '2', { text: 'Retry-After 2 s (not waited for)' }],
  [
    'is shorter than the wait',
    '1',
    '1',
    { text: 'Retry-After is 1, and the wait is 2 s', isWrong: true },
  ],
  [
    'is changed on the way',
    '1',
    '2',
    {
      text: 'Retry-After is 1, and Sluice has sent 2: a server in front changes the field',
      isWrong: true,
    },
  ],
  [
    'is left out on the way',
    null,
    '2',
    {
      text: 'Retry-After is missing, and Sluice has sent 2: a server in front changes the field',
      isWrong: true,
    },
  ],
])('A Retry-After that %s.', async (why, field, sent, result) => {
  const refusal = answer(false, 0)
  const waitMs = why.includes('longer') ? 900 : 1_500
  Object.assign(refusal.decision!, { retryAfterMs: waitMs, retryAfter: sent })
  refusal.headers = new Headers(field === null ? {} : { 'retry-after': field })
  const client = clientOf(() => refusal)
  expect(await checkWait(plan, { nonce: 'any', refusal } as Round, client, 0)).toEqual(result)
})
