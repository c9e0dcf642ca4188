import fc from 'fast-check'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../../src/base/errors.ts'
import { createShards } from '../../../src/store/shards/shards.ts'
import type {
  Limit,
  Store,
  StoreReply,
  StoreRequest,
  StoreState,
} from '../../../src/store/store.ts'
import { createUpstashStore } from '../../../src/store/upstash/upstash.ts'
import { forward, inLine, property, unchanging } from '../../support/law.ts'
import { play, tell } from '../../support/play.ts'
import { algorithms, kinds, type Schedule, type Shape, schedule } from '../../support/schedules.ts'
import { newSubject } from '../../support/subjects.ts'

/** Each a database of its own, behind a token of its own. */
const names = ['eu-1', 'eu-2', 'eu-3']
let redis: RunningRedis
let bridge: Bridge

beforeAll(async () => {
  redis = await startRedis()
  const targets = names.map((token, index) => ({ url: `${redis.url}/${index}`, token }))
  bridge = await startBridge({ redis: targets })
})
afterAll(async () => {
  await bridge.close()
  await redis.stop()
})

const storeAt = (token: string, url: string | undefined = bridge.url) =>
  createUpstashStore({ url, token, deadlineMs: 10_000 })

/** A spread over all of them but those that are `away`, and what it does in the background. */
function newSpread(away: string[] = [], wrap = (store: Store, _name: string) => store) {
  const background: Promise<unknown>[] = []
  const refunded: (string[] | StoreError)[] = []
  const spread = createShards(
    names.map((name) => ({
      name,
      store: wrap(storeAt(name, away.includes(name) ? 'nowhere' : bridge.url), name),
    })),
    { onRefund: (subjects, error) => void refunded.push(error ?? subjects) },
  )
  return {
    spread,
    refunded,
    waitUntil: (promise: Promise<unknown>) => void background.push(promise),
    settled: () => Promise.all(background),
  }
}

/** A new subject that lives there. */
function subjectAt(name: string): string {
  const placed: string[] = []
  const spies = names.map((name): { name: string; store: Store } => ({
    name,
    store: {
      decide: async () => {
        placed.push(name)
        return { decidedAt: 0, states: [[]] }
      },
      decideEach: async () => [],
    },
  }))
  for (;;) {
    const subject = newSubject()
    void createShards(spies).decide([
      { mode: 'peek', limits: [{ subject, terms: policy, cost: 0 }] },
    ])
    if (placed.at(-1) === name) return subject
  }
}

const policy: Limit['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 3,
  windowMs: 3_600_000,
  burst: 3,
  align: 'first-request',
  localShare: 1,
}
const row = (subject: string, change: Partial<Limit> = {}): Limit => ({
  subject,
  terms: policy,
  cost: 1,
  ...change,
})
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits: limits })
const shadow = (...limits: Limit[]): StoreRequest => ({ mode: 'follow', limits: limits })
const left = ({ states }: StoreReply) => states.flat().map(({ remaining }) => remaining)
const allowed = ({ states }: StoreReply) => states.flat().map(({ allowed }) => allowed)
const peek = (spread: Store, ...subjects: string[]) =>
  spread.decide([{ mode: 'peek', limits: subjects.map((subject) => row(subject)) }]).then(left)
const httpOf = async (run: () => Promise<unknown>) => {
  const before = bridge.stats()
  await run()
  const after = bridge.stats()
  return names.map((name) => after[name]!.http - before[name]!.http)
}
const withoutTimes = ({ states }: StoreReply) =>
  states.map((limits) => limits.map(({ decidedAt: at, ...state }) => state))

/** A request and the shadows after it; shadows before all others, each by itself. */
function apart<R extends { mode: StoreRequest['mode'] }>(requests: R[]): R[][] {
  const groups: R[][] = []
  for (const request of requests) {
    const follows = request.mode === 'follow' && groups.some(([one]) => one!.mode !== 'follow')
    if (follows) groups.at(-1)!.push(request)
    else groups.push([request])
  }
  return groups
}

/** The same as limiters ask it: no request and its shadows have a limit in common, and each shadow is one limit. */
const distinct = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: apart(step.requests).flatMap((group) => {
      const met = new Set<string>()
      return group
        .map((ask) => ({
          ...ask,
          limits: ask.limits.filter(({ policy, subject }) => {
            const id = `${policy} ${subject}`
            return !met.has(id) && met.add(id)
          }),
        }))
        .flatMap((ask) =>
          ask.mode === 'follow' ? ask.limits.map((row) => ({ ...ask, limits: [row] })) : ask,
        )
        .filter(({ limits }) => limits.length > 0)
    }),
  })),
})

const withoutShadows = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: step.requests.map((ask) => (ask.mode === 'follow' ? { ...ask, mode: 'take' } : ask)),
  })),
})

describe('laws', () => {
  // Slots are given back by their id, and one that held them before would lose those as well.
  const shape = { policies: 4, subjects: 6, requests: 4, steps: 8 }
  const plans = (shape: Shape) =>
    schedule(
      kinds.filter((kind) => kind !== 'concurrency'),
      shape,
    )

  const asInOne = async (plan: Schedule) => {
    const { calls, replies } = play(plan)
    const { spread, waitUntil, settled } = newSpread()
    for (const [index, { now, requests }] of calls.entries()) {
      const told: StoreState[][] = []
      for (const group of apart(requests) as StoreRequest[][]) {
        told.push(...withoutTimes(await spread.decide(group, { now, waitUntil })))
        await settled()
      }
      expect(told, tell(calls.slice(0, index + 1))).toEqual(replies[index]!.states)
    }
  }
  const serial = (plan: Schedule) => distinct(inLine(forward(unchanging(plan))))

  property('one after the other, all is as in one database', plans(shape).map(serial), asInOne, 60)

  property(
    'so are bans, but for what policies in shadow count towards their own',
    plans({ ...shape, penalties: true }).map((plan) => serial(withoutShadows(plan))),
    asInOne,
    60,
  )

  property(
    'at the same time, no limit is exceeded, and what is not charged in the end is there again',
    fc.record({
      algorithm: fc.constantFrom(...algorithms),
      limits: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 5 }),
      asks: fc.array(
        fc.array(fc.record({ of: fc.nat(4), cost: fc.integer({ min: 1, max: 3 }) }), {
          minLength: 1,
          maxLength: 4,
        }),
        { minLength: 2, maxLength: 25 },
      ),
      many: fc.boolean(),
    }),
    async ({ algorithm, limits, asks, many }) => {
      const { spread, waitUntil, settled } = newSpread()
      const windowMs = 31 * 86_400_000 // nothing comes back by itself
      const quotas = limits.map((limit, index) =>
        row(newSubject(), {
          terms: { ...policy, tag: `t${index}`, algorithm, limit, burst: limit, windowMs },
        }),
      )
      const lists = asks.map((ask) => {
        const byQuota = new Map(ask.map(({ of, cost }) => [of % quotas.length, cost]))
        return [take(...[...byQuota].map(([index, cost]) => ({ ...quotas[index]!, cost })))]
      })
      const start = performance.now()
      const replies = many
        ? await spread.decideEach(lists, { waitUntil })
        : await Promise.all(lists.map((list) => spread.decide(list, { waitUntil })))
      await settled()
      const tookMs = performance.now() - start
      const passed = lists.filter((_, index) =>
        allowed(replies[index] as StoreReply).every((one) => one),
      )
      for (const { subject, terms: policy } of quotas) {
        const charged = passed
          .flatMap(([request]) => request!.limits)
          .filter((one) => one.subject === subject)
          .reduce((sum, { cost }) => sum + cost, 0)
        expect(charged).toBeLessThanOrEqual(policy.limit)
        const rest = policy.limit - charged
        const reply = await spread.decide([
          { mode: 'peek', limits: [{ subject, terms: policy, cost: rest }] },
        ])
        const { remaining, retryAfterMs } = (reply as StoreReply).states[0]![0]!
        if (algorithm === 'token-bucket') {
          // Each refund is credited without what flows while it is on its way.
          expect(remaining).toBeLessThanOrEqual(rest)
          expect(retryAfterMs).toBeLessThanOrEqual(Math.ceil(tookMs) * lists.length)
        } else {
          expect(remaining).toBe(rest)
        }
      }
    },
    60,
  )
})

describe('a request', () => {
  test('of one database is one call to that, and none to the others', async () => {
    const { spread } = newSpread()
    const subject = subjectAt('eu-2')
    const limits = [row(subject), row(subject, { terms: { ...policy, tag: 'u' } })]
    const ask = () => spread.decide([take(limits[0]!), shadow(limits[1]!)])
    expect(await httpOf(ask)).toEqual([0, 1, 0])
    expect(
      await httpOf(() => spread.decideEach([[take(...limits)], [shadow(limits[1]!)]])),
    ).toEqual([0, 1, 0])
    const { states } = await ask()
    expect(states.flat().some(({ decidedAt: at }) => at)).toBe(false)
  })

  test('of two is a call to each, at the same time', async () => {
    let asked = 0
    const both = Promise.withResolvers<void>()
    const { spread } = newSpread([], (store) => ({
      ...store,
      async decide(...call) {
        if (++asked === 2) both.resolve()
        await both.promise // which one after the other would never come
        return store.decide(...call)
      },
    }))
    const limits = [row(subjectAt('eu-1')), row(subjectAt('eu-3'))]
    const reply = await spread.decide([take(...limits)])
    expect(left(reply)).toEqual([2, 2])
    expect(allowed(reply)).toEqual([true, true])
    for (const { decidedAt: at } of reply.states.flat())
      expect(at).toBeGreaterThanOrEqual(reply.decidedAt)
  })

  test('that one refuses is given back by the others, and tells how they stood', async () => {
    const { spread, refunded, waitUntil, settled } = newSpread()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await spread.decide([take(row(b, { cost: 3 }))])
    await spread.decide([take(row(a))])
    const reply = await spread.decide([take(row(a), row(b), row(c))], { waitUntil })
    expect(allowed(reply)).toEqual([true, false, true])
    expect(left(reply)).toEqual([2, 0, 3])
    await settled()
    expect(refunded.flat().sort()).toEqual([a, c].sort())
    expect(await peek(spread, a, b, c)).toEqual([2, 0, 3])
  })

  test('that one refuses is given back also where its client has gone meanwhile', async () => {
    const background: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
    const answer = Promise.withResolvers<void>()
    const { spread } = newSpread([], (store) => ({
      ...store,
      decide: (...call) => store.decide(...call).finally(() => answer.promise),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    void spread.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    // The isolate is at work for as long as what it was told of lasts, and no longer.
    const asked = Promise.all(background)
    answer.resolve()
    await asked
    await Promise.all(background)
    expect(await peek(spread, a)).toEqual([3])
  })

  test('that all refuse gives nothing back', async () => {
    const { spread, refunded, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    expect(
      allowed(await spread.decide([take(row(a, { cost: 4 }), row(b, { cost: 4 }))], { waitUntil })),
    ).toEqual([false, false])
    await settled()
    expect(refunded).toEqual([])
  })

  test('with slots gives those back by their id', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const slots = { ...policy, algorithm: 'concurrency' as const }
    await spread.decide([take(row(b, { cost: 3 }))])
    const held = row(a, { terms: slots, slot: 'mine' })
    await spread.decide([take(held, row(b))], { waitUntil })
    await settled()
    expect(left(await spread.decide([{ mode: 'peek', limits: [held] }]))).toEqual([3])
  })

  test('is given back by each by its own clock, however far they are apart', async () => {
    const start = Date.now()
    const clocks: Record<string, number> = { 'eu-1': start + 60_000, 'eu-2': start - 60_000 }
    const { spread, waitUntil, settled } = newSpread([], (store, name) => ({
      ...store,
      decide: (list, options) => store.decide(list, { ...options, now: clocks[name]! }),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const { decidedAt: now, states } = await spread.decide([take(row(a), row(b))])
    expect(now).toBe(start - 60_000)
    expect(states.flat().map(({ decidedAt: at }) => at)).toEqual([start + 60_000, start - 60_000])
    for (const full of [a, b]) {
      const [x, y] = [subjectAt('eu-1'), subjectAt('eu-2')]
      // The windows that open with it go back to what they were.
      const limits = [row(full, { cost: 3 }), ...(full === a ? [row(y)] : [row(x)])]
      await spread.decide([take(...limits)], { waitUntil })
      await settled()
      expect(await peek(spread, x, y)).toEqual([3, 3])
    }
  })

  test('looks without a trace', async () => {
    const { spread } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    expect(await peek(spread, a, b)).toEqual([3, 3])
    expect(await peek(spread, a, b)).toEqual([3, 3])
  })
})

test('units held of a lease in one place are told, though another is asked too', async () => {
  const { spread } = newSpread([], (store, name) => ({
    ...store,
    decide: async (...call) => ({
      ...(await store.decide(...call)),
      ...(name === 'eu-1' && { leased: true as const }),
    }),
  }))
  const reply = await spread.decide([take(row(subjectAt('eu-1')), row(subjectAt('eu-2')))])
  expect(reply.leased).toBe(true)
})

describe('shadows', () => {
  test('elsewhere are charged where the request passes', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const reply = await spread.decide([take(row(a)), shadow(row(b))], { waitUntil })
    await settled()
    expect(left(reply)).toEqual([2, 2])
    expect(await peek(spread, a, b)).toEqual([2, 2])
  })

  test('elsewhere are given back where it does not, and tell how they stand', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await spread.decide([take(row(a, { cost: 3 })), take(row(c, { cost: 2 }))])
    const list = [take(row(a)), shadow(row(b)), shadow(row(c, { cost: 2 }))]
    const reply = await spread.decide(list, { waitUntil })
    await settled()
    expect(left(reply)).toEqual([0, 3, 1])
    expect(allowed(reply)).toEqual([false, true, false])
    expect(await peek(spread, a, b, c)).toEqual([0, 3, 1])
  })

  test('refuse nobody', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const reply = await spread.decide([take(row(a)), shadow(row(b, { cost: 4 }))], { waitUntil })
    await settled()
    expect(allowed(reply)).toEqual([true, false])
    expect(await peek(spread, a, b)).toEqual([2, 3])
  })
})

describe('a database that does not answer', () => {
  const codeOf = (reply: unknown) =>
    reply instanceof StoreError ? `${reply.store}: ${reply.code}` : 'a reply'

  test('fails what lives there, by its name, and nothing else', async () => {
    const { spread } = newSpread(['eu-2'])
    const subjects = names.map(subjectAt)
    const replies = await spread.decideEach(subjects.map((subject) => [take(row(subject))]))
    expect(replies.map(codeOf)).toEqual(['a reply', 'eu-2: not-configured', 'a reply'])
    const alone = await Promise.all(
      subjects.map((subject) => spread.decide([take(row(subject))]).catch((error) => error)),
    )
    expect(alone.map(codeOf)).toEqual(['a reply', 'eu-2: not-configured', 'a reply'])
    expect((alone[1] as StoreError).message).toBe(
      'not-configured: UPSTASH_REDIS_REST_URL_EU_2 and UPSTASH_REDIS_REST_TOKEN_EU_2 must name a database and its token',
    )
  })

  test('leaves it to the caller whether the request passes: a reply tells how limits stand with and without the charge', async () => {
    const { spread, waitUntil, settled } = newSpread(['eu-2'])
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    const list = [
      take(row(a), row(b)),
      shadow(row(b, { terms: { ...policy, tag: 'u' } })),
      shadow(row(c)),
    ]
    const reply = await spread.decide(list, { waitUntil, allowPartial: true })
    await settled()
    for (const states of [reply.states, reply.uncharged!]) {
      const codes = states.map((limits) => limits.map(({ unanswered }) => unanswered?.error.code))
      expect(codes).toEqual([[undefined, 'not-configured'], ['not-configured'], [undefined]])
    }
    const remaining = (states: StoreState[][]) =>
      [states[0]![0]!, states[2]![0]!].map((one) => one.remaining)
    expect(remaining(reply.states)).toEqual([2, 2])
    expect(remaining(reply.uncharged!)).toEqual([3, 3])
    expect(await peek(spread, a, c)).toEqual([2, 2])
  })

  test('has no say where another refuses', async () => {
    const { spread } = newSpread(['eu-2'])
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const reply = await spread.decide([take(row(a, { cost: 4 }), row(b))], { allowPartial: true })
    expect(allowed(reply)).toEqual([false, false])
    expect(reply.uncharged).toBeUndefined()
  })

  test('fails all where the caller does not say, and nothing stays charged', async () => {
    const { spread, waitUntil, settled } = newSpread(['eu-2'])
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const failure = await spread.decide([take(row(a), row(b))], { waitUntil }).catch((e) => e)
    await settled()
    expect(codeOf(failure)).toBe('eu-2: not-configured')
    expect(await peek(spread, a)).toEqual([3])
  })

  test('when it is to get something back: whoever made the store is told', async () => {
    let takes = 0
    const { spread, refunded, waitUntil, settled } = newSpread([], (store) => ({
      ...store,
      decide: (...call) =>
        call[0][0]!.mode === 'refund'
          ? Promise.reject(new StoreError('timeout'))
          : store.decide(...call).finally(() => takes++),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    await spread.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    await settled()
    expect(takes).toBe(2)
    expect(refunded.map(codeOf)).toEqual(['eu-1: timeout'])
    expect(await peek(spread, a)).toEqual([2])
  })
})

describe('databases that answer late', () => {
  /** Charges in time, and replies after the deadline. */
  const lateAt =
    (late: string[], lateMode: StoreRequest['mode'] = 'take') =>
    (store: Store, name: string) => ({
      ...store,
      async decide(...call: Parameters<Store['decide']>) {
        const reply = await store.decide(...call)
        if (!late.includes(name) || !call[0].some(({ mode }) => mode === lateMode)) return reply
        throw new StoreError('timeout', undefined, undefined, Promise.resolve(reply))
      },
    })
  const allowPartial = true

  test('all of them: their late replies are one, by which the caller can refund', async () => {
    const { spread, waitUntil, settled } = newSpread([], lateAt(['eu-1', 'eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const error = await spread
      .decide([take(row(a), row(b))], { waitUntil, allowPartial })
      .catch((error) => error)
    const late = (await (error as StoreError).late) as StoreReply
    await settled()
    expect(left(late)).toEqual([2, 2])
    expect(late.states[0]!.every(({ decidedAt: at }) => at !== undefined)).toBe(true)
    expect(await peek(spread, a, b)).toEqual([2, 2])
  })

  test('all of them: where one refuses, the others refund', async () => {
    const { spread, waitUntil, settled } = newSpread([], lateAt(['eu-1', 'eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const error = await spread
      .decide([take(row(a), row(b, { cost: 4 }))], { waitUntil, allowPartial })
      .catch((error) => error)
    expect(allowed((await error.late) as StoreReply)).toEqual([true, false])
    await settled()
    expect(await peek(spread, a, b)).toEqual([3, 3])
  })

  test.each(['peek', 'refund'] as const)(
    'refund nothing that a %s has not charged',
    async (mode) => {
      const { spread, waitUntil, settled } = newSpread([], lateAt(['eu-2'], mode))
      const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
      for (const subject of [a, b]) await spread.decide([take(row(subject, { cost: 2 }))])
      const list: StoreRequest[] =
        mode === 'peek'
          ? [{ mode, limits: [row(a, { cost: 4 }), row(b)] }]
          : [a, b].map((subject) => ({ mode, limits: [row(subject)] }))
      const allowPartial = mode === 'peek'
      await spread.decide(list, { waitUntil, allowPartial }).catch(() => {})
      await settled()
      await settled()
      expect(await peek(newSpread().spread, a, b)).toEqual(mode === 'peek' ? [1, 1] : [2, 2])
    },
  )

  test('keep the charges of a request that passes, whatever becomes of others in the list', async () => {
    const { spread, waitUntil, settled } = newSpread([], lateAt(['eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const list = [take(row(a, { cost: 4 })), take(row(b))]
    await spread.decide(list, { waitUntil, allowPartial })
    await settled()
    expect(await peek(spread, a, b)).toEqual([3, 2])
  })
})

describe('a call that is decided once', () => {
  const newKey = () => ({ key: `once-${newSubject()}`, fingerprint: 'f', forMs: 60_000 })

  test('is the same again, in each database, and nothing is given back twice', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    for (const cost of [1, 3]) {
      const options = { idempotency: newKey(), waitUntil }
      const list = [take(row(a), row(b, { cost }))]
      const first = await spread.decide(list, options)
      await settled()
      const again = await spread.decide(list, options)
      await settled()
      expect(first.replayed).toBeUndefined()
      expect(again).toEqual({ ...first, replayed: true })
    }
    expect(await peek(spread, a, b)).toEqual([2, 2]) // the first passed, the second did not
    const each = { idempotency: newKey(), waitUntil }
    const lists = [[take(row(a), row(b))], [take(row(a))]]
    const first = await spread.decideEach(lists, each)
    expect(await spread.decideEach(lists, each)).toEqual(
      first.map((reply) => ({ ...reply, replayed: true })),
    )
    expect(await peek(spread, a, b)).toEqual([0, 1])
  })

  test('that a database did not answer finds, repeated, what the others took', async () => {
    const options = { idempotency: newKey(), allowPartial: true }
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const list = [take(row(a), row(b))]
    const { spread, refunded } = newSpread(['eu-2'])
    await spread.decide(list, options)
    const { spread: whole } = newSpread()
    expect(allowed(await whole.decide(list, options))).toEqual([true, true])
    expect(refunded).toEqual([])
    expect(await peek(whole, a, b)).toEqual([2, 2])
  })

  test('is one in each place, though two names stand for one database', async () => {
    const spread = createShards(names.map((name) => ({ name, store: storeAt('eu-1') })))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const list = [take(row(a), row(b, { cost: 2 }))]
    const options = { idempotency: newKey() }
    const first = await spread.decide(list, options)
    expect(first.replayed).toBeUndefined()
    expect(left(first)).toEqual([2, 1])
    expect(await spread.decide(list, options)).toEqual({ ...first, replayed: true })
    const [each] = await spread.decideEach([list], { idempotency: newKey() })
    expect(allowed(each as StoreReply)).toEqual([true, false])
    expect(await peek(spread, a, b)).toEqual([2, 1])
  })

  test('that one refuses keeps nothing for whom others did not answer', async () => {
    const options = { idempotency: newKey(), allowPartial: true }
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    const { spread, waitUntil, settled } = newSpread(['eu-3'])
    const list = [take(row(a), row(b, { cost: 4 }), row(c))]
    expect(allowed(await spread.decide(list, { ...options, waitUntil }))).toEqual([
      true,
      false,
      false,
    ])
    await settled()
    expect(await peek(spread, a)).toEqual([3])
  })

  test('is a conflict as soon as one database says so', async () => {
    const { spread, waitUntil, settled } = newSpread()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const named = newKey()
    await spread.decide([take(row(b))], { idempotency: named })
    const other = {
      idempotency: { ...named, fingerprint: 'g' },
      waitUntil,
      allowPartial: true,
    }
    const failure = await spread.decide([take(row(a), row(b))], other).catch((error) => error)
    await settled()
    expect((failure as StoreError).code).toBe('idempotency-conflict')
    expect(await peek(spread, a, b)).toEqual([3, 2])
  })
})

test('what operators do reaches the database of the key', async () => {
  const { spread } = newSpread()
  for (const subject of names.map(subjectAt)) {
    await spread.decide([take(row(subject, { cost: 2 }))])
    const [reply] = await spread.decideEach([[{ mode: 'reset', limits: [row(subject)] }]])
    expect(left(reply as StoreReply)).toEqual([3])
  }
})
