import { describe, expect, test, vi } from 'vitest'
import type { Decision } from '../../../../src/core/base/decision.ts'
import type { DecisionFact } from '../../../../src/core/decide/observer.ts'
import * as destinations from '../../../../src/features/observe/destinations.ts'
import type { DecisionEvent } from '../../../../src/features/observe/event.ts'
import { createObserver } from '../../../../src/features/observe/observer.ts'
import { type ObserveOptions, parseOptions } from '../../../../src/features/observe/options.ts'
import { admitted, factOf, limitState, matchOf, refused, refusing } from '../../../support/facts.ts'

const NOW = 1_789_000_000_000

function setUp(options: ObserveOptions = {}) {
  const events: DecisionEvent[] = []
  const lines: string[] = []
  const onDecision = (event: DecisionEvent) => void events.push(event)
  const observer = createObserver(
    parseOptions({ onDecision, ...options }),
    {},
    (event, code) => void lines.push(`${event} ${code}`),
    () => NOW,
  )
  const stats = () => observer.statsOf({ health: () => ({}) })
  return { observer, events, lines, stats }
}

/** The event of one fact. */
function eventOf(fact: Partial<DecisionFact>, options?: ObserveOptions): DecisionEvent {
  const { observer, events } = setUp(options)
  observer.decided(factOf(fact))
  expect(events).toHaveLength(1)
  return events[0]!
}

describe('the event of a decision', () => {
  test('An admitted request names its policy, plan, cost, share, store and place.', () => {
    const event = eventOf({
      decision: { ...admitted, limits: [limitState({ remaining: 4 })] },
      matches: [matchOf({ planName: 'pro' }, { cost: 3 })],
      from: { colo: 'FRA', country: 'DE' },
    })
    expect(event).toEqual({
      v: 1,
      time: NOW,
      outcome: 'allowed',
      decidedBy: 'store',
      allowed: true,
      policy: 'a',
      plan: 'pro',
      units: 3,
      remainingShare: 0.4,
      near: false,
      storeMs: 12,
      calls: 1,
      billedCommands: 4,
      colo: 'FRA',
      country: 'DE',
      subject: 'hash of 203.0.113.7',
    })
  })

  test('A request without a policy has only its outcome.', () => {
    const decision: Decision = { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] }
    expect(eventOf({ decision, decidedBy: 'list', matches: [], use: undefined })).toEqual({
      v: 1,
      time: NOW,
      outcome: 'allowed',
      decidedBy: 'list',
      allowed: true,
      units: 0,
      near: false,
      calls: 0,
      billedCommands: 0,
    })
  })

  test('A denied request names the entry of deny, also if a policy applies.', () => {
    const denial = { reason: 'denied', denied: { by: 'abuse' }, retryAfterMs: null } as const
    const decision: Decision = { ...refused, ...denial, limits: [] }
    const event = eventOf({ decision, decidedBy: 'list', use: undefined })
    expect(event).toMatchObject({ outcome: 'denied', policy: 'abuse', allowed: false, units: 0 })
    expect(event).not.toHaveProperty('subject')
  })

  test('A request that a shadow policy would have refused names this policy.', () => {
    const limits = [limitState(), refusing({ policy: 'trial', mode: 'shadow' })]
    const matches = [matchOf(), matchOf({ name: 'trial', mode: 'shadow' })]
    expect(eventOf({ decision: { ...admitted, limits }, matches })).toMatchObject({
      outcome: 'would-refuse',
      allowed: true,
      policy: 'trial',
      near: true,
    })
  })

  test.each([
    ['limited', refusing()],
    ['banned', refusing({ bannedForMs: 1_000 })],
  ] as const)('A request that is %s names the policy that refuses longest.', (reason, state) => {
    const limits = [
      limitState({ policy: 'b', remaining: 0 }),
      state,
      { ...state, policy: 'c', retryAfterMs: 5_000 },
      refusing({ policy: 'trial', mode: 'shadow', retryAfterMs: null }),
    ]
    const matches = ['b', 'a', 'c', 'trial'].map((name) => matchOf({ name }))
    const decision: Decision = { ...refused, reason, limits }
    expect(eventOf({ decision, matches })).toMatchObject({ outcome: reason, policy: 'c' })
  })

  test('A request of sluice verify is counted as such, and as no client’s.', async () => {
    const { observer, events, stats } = setUp()
    const limits = [refusing({ remaining: 0 })]
    observer.decided(factOf({ decision: { ...refused, limits }, verified: true }))
    expect(events).toMatchObject([
      { outcome: 'verified', policy: 'a', allowed: false, near: false },
    ])
    const { total } = stats()
    expect(total.series).toMatchObject([{ outcome: 'verified', decisions: 1, near: 0 }])
    expect(total.offenders).toEqual([])
  })

  test('A cost above the capacity, which never fits, is the longest refusal.', () => {
    const limits = [refusing(), refusing({ policy: 'c', retryAfterMs: null })]
    const matches = ['a', 'c'].map((name) => matchOf({ name }))
    expect(eventOf({ decision: { ...refused, limits }, matches }).policy).toBe('c')
  })

  test('A shielded request names the first enforced policy.', () => {
    const decision: Decision = { ...refused, reason: 'shielded', limits: [] }
    const matches = [matchOf({ name: 't', mode: 'shadow' }), matchOf({ name: 'b' })]
    expect(eventOf({ decision, decidedBy: 'shield', matches, use: undefined })).toMatchObject({
      outcome: 'shielded',
      policy: 'b',
      subject: 'hash of 203.0.113.7',
    })
  })

  test.each([
    ['deny', 'b', false],
    ['local', 'a', true],
    ['allow', 'c', true],
  ] as const)(
    'A store error names the fallback %s and its first policy.',
    (fallback, policy, allowed) => {
      const reason = 'store-error'
      const decision: Decision = { ...refused, allowed, reason, fallback, limits: [] }
      const matches = [
        matchOf({ name: 't', mode: 'shadow', onStoreError: fallback }),
        matchOf(),
        matchOf({ name: 'b', onStoreError: 'deny' }),
        matchOf({ name: 'c', onStoreError: 'allow' }),
      ]
      const event = eventOf({ decision, decidedBy: 'local', matches })
      expect(event).toMatchObject({ outcome: reason, policy, fallback, allowed, near: false })
      expect(event).not.toHaveProperty('remainingShare')
    },
  )

  test('The policy with the smallest remaining share binds an admitted request.', () => {
    const limits = [
      limitState({ remaining: 5 }),
      limitState({ policy: 'b', limit: 100, remaining: 20 }),
      limitState({ policy: 't', mode: 'shadow', remaining: 1 }),
    ]
    const matches = [matchOf(), matchOf({ name: 'b', burst: 100 }), matchOf({ name: 't' })]
    expect(eventOf({ decision: { ...admitted, limits }, matches })).toMatchObject({
      policy: 'b',
      remainingShare: 0.2,
      near: true,
    })
  })

  test('The capacity of a bucket is its burst.', () => {
    const limits = [limitState({ limit: 10, remaining: 30 })]
    const event = eventOf({ decision: { ...admitted, limits }, matches: [matchOf({ burst: 40 })] })
    expect(event.remainingShare).toBe(0.75)
  })

  test('With subjects none it has no subject.', () => {
    expect(eventOf({}, { subjects: 'none' })).not.toHaveProperty('subject')
  })

  test('An event whose subject must be hashed first follows under waitUntil.', async () => {
    const { observer, events } = setUp()
    const waiting: Promise<unknown>[] = []
    observer.decided(
      factOf({ hash: async () => 'later', waitUntil: (one) => void waiting.push(one) }),
    )
    expect(events).toEqual([])
    await Promise.all(waiting)
    expect(events.map(({ subject }) => subject)).toEqual(['later'])
  })
})

describe('onDecision', () => {
  test('It receives the context.', () => {
    const onDecision = vi.fn()
    setUp({ onDecision }).observer.decided(factOf({ context: 'c' }))
    expect(onDecision).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ v: 1 }), 'c')
  })

  const throws = () => {
    throw new RangeError()
  }
  test.each([
    ['throws', throws],
    ['rejects', () => Promise.reject(new RangeError())],
  ])('An error is logged if it %s, and the decision is counted.', async (_, onDecision) => {
    const { observer, lines, stats } = setUp({ onDecision })
    const waiting: Promise<unknown>[] = []
    observer.decided(factOf({ waitUntil: (one) => void waiting.push(one) }))
    await Promise.all(waiting)
    expect(lines).toEqual(['observe-failed RangeError'])
    expect(stats().total.series[0]!.decisions).toBe(1)
  })

  test('If it throws, the counts are reported nevertheless.', async () => {
    const written = vi.spyOn(console, 'log').mockReturnValue()
    let now = NOW
    const options = parseOptions({ onDecision: throws, to: 'log', every: '10s' })
    const observer = createObserver(options, destinations, vi.fn(), () => now)
    const waiting: Promise<unknown>[] = []
    for (let n = 0; n < 2; n++) {
      observer.decided(factOf({ waitUntil: (one) => void waiting.push(one) }))
      now += 10_000
    }
    await Promise.all(waiting)
    expect(written).toHaveBeenCalledOnce()
    written.mockRestore()
  })
})

describe('the statistics of an isolate', () => {
  test('Refused clients are counted, except for refusals that are not theirs.', async () => {
    const { observer, stats } = setUp()
    const decide = (decision: Decision, value: string, times: number) => {
      const matches = [matchOf({}, { partitionKey: [['ip', value]] })]
      for (let n = 0; n < times; n++) observer.decided(factOf({ decision, matches }))
    }
    decide(refused, 'x', 3)
    decide({ ...refused, reason: 'banned' }, 'x', 1)
    decide({ ...refused, reason: 'shielded', limits: [] }, 'y', 2)
    decide(admitted, 'z', 9)
    decide({ ...refused, reason: 'store-error', fallback: 'deny', limits: [] }, 'z', 9)
    const { total, fallbacks } = stats()
    expect(total.offenders).toEqual([
      { policy: 'a', subject: 'hash of x', refusals: 4, error: 0 },
      { policy: 'a', subject: 'hash of y', refusals: 2, error: 0 },
    ])
    expect(fallbacks).toBe(9)
  })

  test.each([
    ['hashed', 'ip=x'],
    ['none', undefined],
  ] as const)(
    'In sluice dev, offenders of subjects %j have the values of their key, unless it asks for fewer. Events do not.',
    async (subjects, label) => {
      const { observer, stats, events } = setUp({ subjects })
      const matches = [matchOf({}, { partitionKey: [['ip', 'x']] })]
      observer.decided(factOf({ decision: refused, matches, env: { SLUICE_DEV: 'true' } }))
      const { offenders } = stats().total
      expect(offenders.map(({ subject }) => subject)).toEqual(label ? [label] : [])
      expect(events[0]!.subject).toBe(label && 'hash of x')
    },
  )

  test('The circuit of each database and the calls are in it.', async () => {
    const { observer } = setUp()
    const limits = [{ subject: 's', cost: 1, terms: matchOf({ algorithm: 'fixed-window' }).terms }]
    const { end } = observer.begin([{ requests: [{ mode: 'take', limits }] }])
    const answers = [`${NOW} +${NOW}:60000:1;`]
    end([{ decidedAt: NOW, states: [[limitState()]] }], { answers, sendsTime: false })
    const { circuit, total } = observer.statsOf({
      health: () => ({ openSince: NOW - 5_000, answeredAt: NOW - 9_000 }),
    })
    expect(circuit).toBe('open')
    expect(total.store).toMatchObject({ calls: 1, billedCommands: 4 })
  })

  test('An error of the observer itself never reaches the request.', () => {
    const { observer, lines } = setUp()
    const hash = () => {
      throw new TypeError()
    }
    expect(() => observer.decided(factOf({ hash }))).not.toThrow()
    expect(lines).toEqual(['observe-failed TypeError'])
  })
})
