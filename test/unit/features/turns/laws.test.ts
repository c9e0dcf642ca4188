/** Laws of requests that wait, over whole schedules: several isolates with one store, at a time of their own. */
import fc from 'fast-check'
import { beforeEach, expect, test, vi } from 'vitest'
import { heldWorld, type Policies } from '../../../support/held-requests.ts'
import { useInstantDigests } from '../../../support/instant-digests.ts'
import { property } from '../../../support/law.ts'
import { algorithms, type Counting } from '../../../support/schedules.ts'
import { cancellable, inVirtualTime, type VirtualTime } from '../../../support/virtual-time.ts'

useInstantDigests()

/** How a policy counts. */
interface Terms {
  algorithm: Counting
  limit: number
  burst: number
  windowMs: number
}

interface Visit {
  /** ms since the visit before. */
  after: number
  isolate: number
  user: number
  cost: number
  /** True if the request must leave half of the quota free. */
  reserves: boolean
  plan: 'small' | 'large'
  /** The client leaves after so many ms. */
  leaves: number | undefined
  /** The runtime cancels the request after so many ms without notice. */
  cancelled: number | undefined
  /** The handler takes so long, ms, and its response counts or not. */
  lasts: number
  counts: boolean
  /** What happens first. */
  first: 'reset' | 'override' | 'restore' | 'unban' | 'fails' | 'hangs' | undefined
}

interface Plan {
  terms: Terms
  waitMs: number
  /** A policy of all clients together, with a wait or not. */
  common: (Terms & { waitMs: number | undefined }) | undefined
  /** The first so many of four isolates know of the wait. */
  waiting: number
  maxWaiting: number
  penalty: boolean
  onStoreError?: 'deny' | 'local' | 'allow'
  /** The latencies of the calls, in turn, ms. */
  latencies: number[]
  visits: Visit[]
}

/** What a law draws besides requests. */
interface Kinds {
  users?: number
  isolates?: number
  visits?: number
  /** Requests differ: in their cost, their floor and their plan. */
  differ?: boolean
  leave?: boolean
  cancel?: boolean
  refund?: boolean
  penalty?: boolean
  common?: boolean
  /** Isolates without `wait`, or with a small room. */
  mixed?: boolean
  jitter?: boolean
  first?: NonNullable<Visit['first']>[]
}

const terms = fc.record<Terms>({
  algorithm: fc.constantFrom(...algorithms),
  limit: fc.integer({ min: 1, max: 6 }),
  burst: fc.integer({ min: 1, max: 6 }),
  windowMs: fc.integer({ min: 50, max: 2_000 }),
})
const waitMs = fc.integer({ min: 1, max: 4_000 })
const perhaps = <T>(is: boolean | undefined, value: fc.Arbitrary<T>, freq = 4) =>
  is ? fc.option(value, { nil: undefined, freq }) : fc.constant(undefined)
const either = (is: boolean | undefined) => (is ? fc.boolean() : fc.constant(false))

const planOf = (kinds: Kinds): fc.Arbitrary<Plan> =>
  fc.record<Plan>({
    terms,
    waitMs,
    common: perhaps(
      kinds.common,
      fc.tuple(terms, perhaps(true, waitMs, 1)).map(([terms, waitMs]) => ({ ...terms, waitMs })),
      1,
    ),
    waiting: kinds.mixed ? fc.integer({ min: 1, max: 4 }) : fc.constant(4),
    maxWaiting: kinds.mixed ? fc.constantFrom(1, 3, 1_000) : fc.constant(1_000),
    penalty: either(kinds.penalty),
    latencies: kinds.jitter
      ? fc.array(fc.nat(12), { minLength: 1, maxLength: 7 })
      : fc.nat(5).map((ms) => [ms]),
    visits: fc.array(
      fc.record<Visit>({
        after: fc.oneof(
          { weight: 6, arbitrary: fc.nat(20) },
          { weight: 2, arbitrary: fc.nat(600) },
          { weight: 1, arbitrary: fc.nat(3_000) },
        ),
        isolate: fc.nat((kinds.isolates ?? 4) - 1),
        user: fc.nat((kinds.users ?? 1) - 1),
        cost: kinds.differ ? fc.constantFrom(1, 1, 2, 3) : fc.constant(1),
        reserves: either(kinds.differ),
        plan: kinds.differ ? fc.constantFrom('small', 'large') : fc.constant('small'),
        leaves: perhaps(kinds.leave, fc.nat(1_500)),
        cancelled: perhaps(kinds.cancel, fc.nat(1_500)),
        lasts: fc.nat(300),
        counts: kinds.refund ? fc.boolean() : fc.constant(true),
        first: kinds.first
          ? perhaps(true, fc.constantFrom(...kinds.first), 8)
          : fc.constant(undefined),
      }),
      { minLength: 1, maxLength: kinds.visits ?? 30, size: 'max' },
    ),
  })

const termsOf = ({ algorithm, limit, burst, windowMs }: Terms) => ({
  algorithm,
  limit,
  ...(algorithm === 'token-bucket' && { burst }),
  window: `${windowMs}ms` as const,
  cost: [2, 3].map((cost) => ({ header: { 'x-cost': `${cost}` }, cost })),
})

const LARGE = 2 // the large plan has so many times the limit

function policiesOf(plan: Plan, waits: boolean): Policies {
  const { terms, waitMs, common, penalty, onStoreError = 'local', visits } = plan
  const own = {
    ...termsOf(terms),
    name: 'own',
    key: 'header:x-user',
    ...(waits && { wait: `${waitMs}ms` }),
    plan: 'header:x-plan',
    limits: { small: terms.limit, large: LARGE * terms.limit },
    onStoreError,
    overrides: true,
    reserve: [{ match: { header: { 'x-reserves': 'yes' } }, share: 0.5 }],
    ...(visits.some(({ counts }) => !counts) && { countOnly: 200 }),
    ...(penalty && { penalty: { after: 2, within: '5s', ban: '2s' } }),
  }
  const other = common && {
    ...termsOf(common),
    name: 'common',
    key: 'global',
    onStoreError,
    ...(waits && common.waitMs !== undefined && { wait: `${common.waitMs}ms` }),
  }
  return [own, ...(other ? [other] : [])] as never
}

/** Plays a schedule until all of its requests have ended. */
async function play(plan: Plan, time: VirtualTime) {
  let calls = 0
  const { latencies, maxWaiting, waiting, visits } = plan
  const world = heldWorld(time, () => latencies[calls++ % latencies.length]!)
  const isolates = [0, 1, 2, 3].map((index) =>
    world.isolate(policiesOf(plan, index < waiting), { maxWaiting }),
  )
  const resets: number[] = []
  const passed: Visit[] = []
  const gone = Symbol()

  async function request(visit: Visit) {
    const { isolate, leaves, cancelled, lasts, counts } = visit
    const closed = leaves === undefined ? undefined : time.sleep(leaves)
    const { result: checking, cancel } = cancellable(() =>
      isolates[isolate]!.check(headersOf(visit), closed),
    )
    const ends = [checking]
    if (cancelled !== undefined) {
      const end = time.sleep(cancelled).then(cancel)
      ends.push(end.then(() => Promise.reject(gone)))
    }
    const { result, ...checked } = await Promise.race(ends)
    if (checked.allowed) {
      passed.push(visit)
      await time.sleep(lasts)
      result.settle({ status: counts ? 200 : 404, headers: new Headers() })
    }
    return { ...checked, visit }
  }

  const going: Promise<Awaited<ReturnType<typeof request>> | undefined>[] = []
  for (const visit of visits) {
    await time.pass(visit.after)
    const { first, user } = visit
    world.fault = first === 'fails' || first === 'hangs' ? first : undefined
    if (first === 'reset' || first === 'restore' || first === 'unban') {
      if (first === 'reset') resets.push(time.now())
      void isolates[0]!.operate({ mode: first }, { 'x-user': `${user}` })
    }
    if (first === 'override') {
      const units = LARGE * plan.terms.limit
      void isolates[0]!.operate({ mode: first, units, forMs: 500 }, { 'x-user': `${user}` })
    }
    const ended = request(visit)
    going.push(ended.catch((error) => (error === gone ? undefined : Promise.reject(error))))
  }
  // The longest wait, two deadlines and a late reply. Then tickets have ended, too.
  world.fault = undefined
  await time.pass(20_000)
  const hung = Symbol()
  const ended = await Promise.all(going.map((one) => Promise.race([one, Promise.resolve(hung)])))
  expect(ended, 'each request ends').not.toContain(hung)
  const all = ended as Awaited<(typeof going)[number]>[]
  return { world, isolates, resets, passed, ended: all.filter((one) => one !== undefined) }
}

type Played = Awaited<ReturnType<typeof play>>
type Ended = Played['ended'][number]

const headersOf = ({ user, cost, reserves, plan }: Visit) => ({
  'x-user': `${user}`,
  'x-cost': `${cost}`,
  'x-plan': plan,
  ...(reserves && { 'x-reserves': 'yes' }),
})

/** The units that may pass in any half-open interval of a window (docs/explanation/algorithms.md). */
const bounds: Record<Counting, (limit: number, burst: number) => number> = {
  'fixed-window': (limit) => 2 * limit,
  'sliding-window': (limit) => 2 * limit - 1,
  'sliding-log': (limit) => limit,
  'token-bucket': (limit, burst) => burst + limit - 1,
}

/** No interval of a window passes more than the bound. */
function keepsBound({ ended, resets }: Played, name: string, terms: Terms, most: number) {
  const { algorithm, burst, windowMs } = terms
  const bound = bounds[algorithm](most, Math.max(burst, most > terms.limit ? most : 0))
  const passed = ended.flatMap(({ allowed, visit, decision }) => {
    const state = decision.limits.find(({ policy }) => policy === name)
    const at = state?.decidedAt ?? decision.decidedAt
    const isKept = allowed && visit.counts && decision.fallback === undefined
    return isKept && at !== undefined ? [{ at, ...visit }] : []
  })
  for (const one of passed) {
    const isReset = resets.some((at) => at >= one.at - 30 && at < one.at + windowMs + 30)
    if (isReset) continue
    const within = passed.filter(
      ({ at, user }) =>
        one.at <= at && at < one.at + windowMs && (name === 'common' || user === one.user),
    )
    const units = within.reduce((sum, { cost }) => sum + cost, 0)
    expect(units, `${name} within ${windowMs} ms of ${one.at}`).toBeLessThanOrEqual(bound)
  }
}

/** The longest time that a call takes, without the batch that it waits for, ms. */
const latencyOf = ({ latencies }: Plan) => 2 * Math.max(...latencies)
const DEADLINE_MS = 1_000

/** For so long a request that is charged waits for the answer of an earlier one that the runtime may have cancelled, ms. */
const HOLD_MS = 300

/** A request passes when it is charged and those before it have their answers, and none takes longer than its wait and the deadlines of its calls. */
function endsInTime(plan: Plan, { ended }: Played, callMs = latencyOf(plan)) {
  const isAnyCancelled = plan.visits.some(({ cancelled }) => cancelled !== undefined)
  const holdMs = isAnyCancelled ? HOLD_MS : callMs
  for (const { allowed, decision, startedAt, endedAt, visit } of ended) {
    const longest = visit.isolate < plan.waiting ? plan.waitMs : 0
    expect(endedAt - startedAt).toBeLessThanOrEqual(longest + callMs + holdMs + 2)
    const at = decision.decidedAt
    if (allowed && at !== undefined)
      expect(endedAt - at).toBeLessThanOrEqual(latencyOf(plan) + holdMs)
  }
}

/** After all requests have ended, an isolate with `wait` sees what one without sees: there is no line. */
async function linesHaveEnded({ world }: Played, plan: Plan, time: VirtualTime) {
  for (const user of [0, 1]) {
    const headers = { 'x-user': `${user}`, 'x-plan': 'small' }
    const peeks = [true, false].map((waits) =>
      world.isolate(policiesOf(plan, waits)).decide(headers, {}, 'peek'),
    )
    await time.pass(100)
    const [seen, real] = await Promise.all(peeks)
    expect(seen!.retryAfterMs).toBe(real!.retryAfterMs)
  }
}

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
})

/** States a law. A schedule has the whole process for itself. */
const law = (claim: string, draw: Kinds, check: (plan: Plan, time: VirtualTime) => Promise<void>) =>
  property(claim, planOf(draw), (plan) => inVirtualTime((time) => check(plan, time)), undefined, 1)

const chargedUnits = ({ world }: Played) =>
  world.charged.reduce((sum, { request }) => sum + request.limits[0]!.cost, 0)
const passedUnits = ({ ended }: Played) =>
  ended.reduce((sum, { allowed, visit }) => sum + (allowed ? visit.cost : 0), 0)
/** True if a request has waited: it ended later than its first call, in a batch. */
const hasWaited = ({ startedAt, endedAt }: Timed, plan: Plan) =>
  endedAt - startedAt > 2 * latencyOf(plan) + 4
type Timed = Pick<Ended, 'startedAt' | 'endedAt'>

law(
  'What passes in any interval is within the bound, and each request ends within its wait: with several keys, plans, floors, bans, operators, clients that leave, requests that are cancelled, and isolates that know of no wait.',
  {
    users: 2,
    differ: true,
    leave: true,
    cancel: true,
    penalty: true,
    common: true,
    mixed: true,
    jitter: true,
    first: ['reset', 'override', 'restore', 'unban'],
  },
  async (plan, time) => {
    const played = await play(plan, time)
    keepsBound(played, 'own', plan.terms, LARGE * plan.terms.limit)
    if (plan.common) keepsBound(played, 'common', plan.common, plan.common.limit)
    endsInTime(plan, played)
    await linesHaveEnded(played, plan, time)
  },
)

law(
  'The units that are kept stay within the bound when others are refunded, also of two keys.',
  { users: 2, refund: true, common: true, leave: true, mixed: true, jitter: true },
  async (plan, time) => {
    const played = await play(plan, time)
    keepsBound(played, 'own', plan.terms, plan.terms.limit)
    if (plan.common) keepsBound(played, 'common', plan.common, plan.common.limit)
    endsInTime(plan, played)
    await linesHaveEnded(played, plan, time)
  },
)

law(
  'A refused request has charged nothing, and one that passes has charged its cost once.',
  { differ: true, leave: true, penalty: true, mixed: true, jitter: true },
  async (plan, time) => {
    const played = await play(plan, time)
    expect(chargedUnits(played)).toBe(passedUnits(played))
  },
)

/** The longest time between the turns of two requests that wait: a sliding window of one unit lets one pass every other window. */
const slotMs = ({ terms: { algorithm, limit, windowMs } }: Plan) =>
  algorithm === 'token-bucket'
    ? Math.ceil(windowMs / limit)
    : algorithm === 'sliding-window'
      ? 2 * windowMs
      : windowMs

/** None that has waited is refused if a later one passes within its wait that has waited for less, by more than one slot. */
function isFair(plan: Plan, ended: Ended[]) {
  for (const [index, one] of ended.entries()) {
    if (one.allowed || one.visit.leaves !== undefined || !hasWaited(one, plan)) continue
    const waited = one.endedAt - one.startedAt
    // A turn of a bucket that is not full does not depend on when exactly the earlier ones pass.
    if (plan.terms.burst > 1) expect(plan.terms.algorithm).not.toBe('token-bucket')
    const overtakes = (other: Ended) =>
      other.allowed &&
      other.endedAt <= one.startedAt + plan.waitMs &&
      hasWaited(other, plan) &&
      other.endedAt - other.startedAt < waited - slotMs(plan)
    expect(ended.slice(index + 1).filter(overtakes)).toEqual([])
  }
}

/** Within an isolate none passes before an earlier one of its key that waits: not one that has waited itself, nor one that came meanwhile. */
function isInOrder(plan: Plan, { ended, passed }: Played) {
  const places = new Map(passed.map((visit, place) => [visit, place]))
  for (const [index, one] of ended.entries()) {
    if (!one.allowed || !hasWaited(one, plan)) continue
    const isLater = (other: Ended) =>
      other.visit.isolate === one.visit.isolate &&
      other.visit.user === one.visit.user &&
      (hasWaited(other, plan) || other.startedAt > one.startedAt + 2 * latencyOf(plan) + 4)
    const overtakes = (other: Ended) =>
      isLater(other) && other.allowed && places.get(other.visit)! < places.get(one.visit)!
    expect(ended.slice(index + 1).filter(overtakes)).toEqual([])
  }
}

law(
  'Requests of equal cost that wait pass in the order in which they came within an isolate, and across isolates none waits in vain for another that came later.',
  {},
  async (plan, time) => {
    const played = await play(plan, time)
    isInOrder(plan, played)
    isFair(plan, played.ended)
  },
)

law(
  'Requests of one isolate pass in the order in which they came, with any latencies and refunds, also if clients leave and requests are cancelled without notice.',
  { isolates: 2, leave: true, cancel: true, refund: true, jitter: true },
  async (plan, time) => isInOrder(plan, await play(plan, time)),
)

law(
  'With any latencies and with clients that leave, no request waits in vain for another that came later.',
  { leave: true, jitter: true },
  async (plan, time) => isFair(plan, (await play(plan, time)).ended),
)

law(
  'While the store fails, requests end within their wait and the deadlines, and the store charges no more than its bound.',
  { users: 2, leave: true, common: true, jitter: true, first: ['fails', 'hangs'] },
  async (plan, time) => {
    for (const onStoreError of ['deny', 'local', 'allow'] as const) {
      const played = await play({ ...plan, onStoreError }, time)
      keepsBound(played, 'own', plan.terms, plan.terms.limit)
      if (plan.common) keepsBound(played, 'common', plan.common, plan.common.limit)
      endsInTime(plan, played, DEADLINE_MS)
    }
  },
)

law(
  'A peek tells whether the next request passes at once, unless an earlier one of its isolate that still waits passes in its place.',
  { users: 1, leave: true, differ: true, jitter: false },
  async (plan, time) => {
    const world = heldWorld(time)
    // A list of calls may wait for the end of its millisecond, and here no time passes. A cached refusal is no answer of the store.
    const alone = { batching: false, denialCache: false }
    const isolates = [0, 1, 2, 3].map(() => world.isolate(policiesOf(plan, true), alone))
    const passed: Visit[] = []
    for (const visit of plan.visits) {
      await time.pass(visit.after)
      const headers = headersOf(visit)
      const peeking = isolates[3 - visit.isolate]!.decide(headers, {}, 'peek')
      await time.pass(0)
      const before = passed.length
      const closed = time.sleep(visit.leaves ?? 60_000)
      void isolates[visit.isolate]!.check(headers, closed).then(({ allowed }) => {
        if (allowed) passed.push(visit)
      })
      await time.pass(0)
      const { allowed } = await peeking
      const now = passed.slice(before)
      const isExchanged = allowed && now.some((one) => one !== visit)
      if (!isExchanged) expect(now.includes(visit)).toBe(allowed)
    }
    await time.pass(120_000)
  },
)

law(
  'A repeated call gets the answer of the first, at any isolate and while the first one waits, and is charged once.',
  { leave: true, mixed: false, jitter: true },
  async (plan, time) => {
    const { latencies, visits } = plan
    let calls = 0
    const world = heldWorld(time, () => latencies[calls++ % latencies.length]!)
    const isolates = [0, 1, 2, 3].map(() => world.isolate(policiesOf(plan, true)))
    const answers: ReturnType<typeof ask>[][] = []
    async function ask(isolate: number, visit: Visit, index: number) {
      const startedAt = time.now()
      const idempotency = { key: `once${index}`, fingerprint: 'f', forMs: 600_000 }
      const { allowed } = await isolates[isolate]!.decide(headersOf(visit), { idempotency })
      return { allowed, startedAt, endedAt: time.now() }
    }
    for (const [index, visit] of visits.entries()) {
      await time.pass(visit.after)
      const { isolate, leaves } = visit
      const again = async () => {
        await time.sleep(leaves!)
        return ask(3 - isolate, visit, index)
      }
      answers.push([ask(isolate, visit, index), ...(leaves === undefined ? [] : [again()])])
    }
    await time.pass(60_000)
    const all = await Promise.all(answers.map((some) => Promise.all(some)))
    for (const some of all) {
      // One of two calls that wait at the same time may come to the end of its wait.
      const known = some.filter((one) => one.allowed || !hasWaited(one, plan))
      expect(new Set(known.map(({ allowed }) => allowed)).size).toBeLessThanOrEqual(1)
    }
    const passed = all.filter((some) => some.some(({ allowed }) => allowed)).length
    expect(world.charged.length).toBe(passed)
  },
)

/** A policy of the reports: a line for all clients. */
const line = (change: object) => ({ name: 'line', key: 'global', ...change }) as Policies[0]
const bucket = { algorithm: 'token-bucket', limit: 10, burst: 10, window: '1s' }

/** The results of requests that are all begun now. */
async function burst<T>(time: VirtualTime, count: number, ask: () => Promise<T>) {
  const going = Array.from({ length: count }, ask)
  await time.pass(70_000)
  return Promise.all(going)
}

test('Refunds of a token bucket reach those who wait: six requests a second that each reserve 5 of 10 units and use 1 pass.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'token-bucket', limit: 100, window: '10s', wait: '2s' }
    const cost = { otherwise: 5, response: 'x-used' }
    const { check } = heldWorld(time, () => 1).isolate([line({ ...policy, cost })])
    const going: Promise<boolean>[] = []
    const visit = async () => {
      const { allowed, result } = await check()
      if (!allowed) return false
      await time.sleep(20)
      result.settle({ status: 200, headers: new Headers({ 'x-used': '1' }) })
      return true
    }
    for (let n = 0; n < 30; n += 1) going.push(visit())
    for (let n = 0; n < 120; n += 1) {
      await time.pass(166)
      going.push(visit())
    }
    await time.pass(10_000)
    expect((await Promise.all(going)).filter(Boolean).length).toBeGreaterThanOrEqual(138)
  }))

test('Units that come back let one request pass at once that waits in the same isolate.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 1, window: '30s', wait: '40s' }
    const { check } = heldWorld(time).isolate([line({ ...policy, countOnly: 401 })])
    const first = check()
    const second = check()
    await time.pass(100)
    ;(await first).result.settle({ status: 200, headers: new Headers() })
    await time.pass(100)
    const { allowed, startedAt, endedAt } = await second
    expect([allowed, endedAt - startedAt]).toEqual([true, 100])
  }))

test('Units that come back together let as many requests pass at once as they are for.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 3, window: '30s', wait: '40s' }
    const { check } = heldWorld(time).isolate([
      line({ ...policy, cost: [{ header: { 'x-cost': '3' }, cost: 3 }], countOnly: 401 }),
    ])
    const first = check({ 'x-cost': '3' })
    const others = [check(), check(), check()]
    await time.pass(100)
    ;(await first).result.settle({ status: 200, headers: new Headers() })
    await time.pass(60_000)
    const ended = (await Promise.all(others)).map(({ startedAt, endedAt }) => endedAt - startedAt)
    expect(ended).toEqual([100, 100, 100])
  }))

test('A request that the runtime has cancelled gets no units, and delays one that has room by no more than 100 ms.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 2, window: '30s', wait: '40s' }
    const { check } = heldWorld(time).isolate([line({ ...policy, countOnly: 401 })])
    const both = [check(), check()]
    const waiting = cancellable(() => check())
    await time.pass(100)
    waiting.cancel()
    for (const { result } of await Promise.all(both))
      result.settle({ status: 200, headers: new Headers() })
    await time.pass(10)
    const next = check()
    await time.pass(50_000)
    const { allowed, startedAt, endedAt } = await next
    expect(allowed).toBe(true)
    expect(endedAt - startedAt).toBeLessThanOrEqual(100)
  }))

test('A ban outlives the store, whether or not the refused request has waited.', () =>
  inVirtualTime(async (time) => {
    const world = heldWorld(time)
    const penalty = { after: 1, within: '1m', ban: '10m' }
    const { check } = world.isolate([line({ ...bucket, limit: 1, burst: 1, wait: '1s', penalty })])
    const results = await burst(time, 6, () => check())
    expect(results.map(({ decision }) => decision.reason)).toContain('banned')
    world.fault = 'fails'
    const [after] = await burst(time, 1, () => check())
    expect(after!.decision).toMatchObject({ allowed: false, reason: 'store-error' })
  }))

test('While isolates with and without the wait run together, no window passes more than the bound, also if those who wait leave.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 10, window: '10s' }
    const world = heldWorld(time)
    const old = world.isolate([line(policy)])
    const waits = world.isolate([line({ ...policy, wait: '30s' })])
    const going: Promise<{ allowed: boolean }>[] = []
    for (let n = 0; n < 60; n += 1) {
      going.push(waits.check({}, time.sleep(50)), old.check())
      await time.pass(100)
    }
    const results = await Promise.all(going)
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(10)
  }))

test('A repeated call waits for the rest only by the clock of the store, and not by that of its isolate.', () =>
  inVirtualTime(async (time) => {
    const world = heldWorld(time)
    const policy = [line({ ...bucket, limit: 1, burst: 1, wait: '5s' })]
    const idempotency = { key: 'one', fingerprint: 'f', forMs: 60_000 }
    const ask = { idempotency }
    const [one, other] = [world.isolate(policy), world.isolate(policy, { skew: 5_000 })]
    await one.decide()
    const startedAt = time.now()
    const both = [one, other].map(async ({ decide }) => {
      const { allowed } = await decide({}, ask)
      return [allowed, time.now() - startedAt >= 1_000]
    })
    await time.pass(5_000)
    expect(await Promise.all(both)).toEqual([
      [true, true],
      [true, true],
    ])
    expect(world.charged).toHaveLength(2)
  }))

test.each([['8s'], [undefined]])(
  'Requests that wait in lines of their own pass a common limit only within its bound (its wait: %s).',
  (wait) =>
    inVirtualTime(async (time) => {
      const own = { ...bucket, limit: 1, burst: 1, name: 'per-user', key: 'header:x-user' }
      const common = { algorithm: 'sliding-log', limit: 5, window: '1s', name: 'common' }
      const { check } = heldWorld(time).isolate([
        line({ ...own, wait: '8s' }),
        line({ ...common, match: { header: { 'x-partner': 'yes' } }, ...(wait && { wait }) }),
      ])
      const going: ReturnType<typeof check>[] = []
      for (let user = 0; user < 25; user += 1)
        for (let n = 0; n < 6; n += 1) void check({ 'x-user': `u${user}` })
      for (let user = 0; user < 25; user += 1) {
        await time.pass(210)
        going.push(check({ 'x-user': `u${user}`, 'x-partner': 'yes' }))
      }
      await time.pass(30_000)
      const passed = (await Promise.all(going)).filter(({ allowed }) => allowed)
      expect(passed.length).toBeGreaterThan(0)
      const times = passed.map(({ decision }) => decision.decidedAt!)
      for (const from of times) {
        const within = times.filter((at) => at >= from && at < from + 1_000)
        expect(within.length).toBeLessThanOrEqual(5)
      }
    }),
)

test('A burst above maxWaiting leaves no line: once those who wait have passed, one request passes at once.', () =>
  inVirtualTime(async (time) => {
    for (const algorithm of algorithms) {
      const policy = line({ ...bucket, algorithm, burst: undefined, wait: '40s' })
      const { check } = heldWorld(time).isolate([policy], { maxWaiting: 20 })
      await burst(time, 300, () => check())
      const [one] = await burst(time, 1, () => check())
      expect(one!.endedAt - one!.startedAt).toBeLessThan(10)
    }
  }))

test('A request that must leave nothing free passes before those that wait for the reserve.', () =>
  inVirtualTime(async (time) => {
    const reserve = [{ match: { header: { 'x-checkout': 'yes' } }, share: 0 }, { share: 0.5 }]
    const { check } = heldWorld(time).isolate([line({ ...bucket, wait: '10s', reserve })])
    for (let n = 0; n < 100; n += 1) void check()
    await time.pass(100)
    const going = check({ 'x-checkout': 'yes' })
    await time.pass(20_000)
    const { allowed, startedAt, endedAt } = await going
    expect([allowed, endedAt - startedAt]).toEqual([true, 0])
  }))

test('A client whose requests find no room in the isolate is not banned.', () =>
  inVirtualTime(async (time) => {
    const penalty = { after: 3, within: '1m', ban: '1h' }
    const policy = { ...bucket, key: 'header:x-user', wait: '10s', penalty }
    const { check } = heldWorld(time).isolate([line(policy)], { maxWaiting: 5 })
    for (let n = 0; n < 30; n += 1) void check({ 'x-user': 'loud' })
    for (let n = 0; n < 10; n += 1) void check({ 'x-user': 'quiet' })
    const going = Array.from({ length: 8 }, () => check({ 'x-user': 'quiet' }))
    await time.pass(20_000)
    const reasons = (await Promise.all(going)).map(({ decision }) => decision.reason)
    expect(reasons).toContain('limited')
    expect(reasons).not.toContain('banned')
  }))

test('After a place was given up, a peek and the next request agree.', () =>
  inVirtualTime(async (time) => {
    for (const algorithm of algorithms) {
      const policy = line({ ...bucket, algorithm, burst: undefined, window: '10s', wait: '30s' })
      const { check, decide } = heldWorld(time).isolate([policy])
      for (let n = 0; n < 10; n += 1) void check()
      void check({}, time.sleep(5))
      await time.pass(10)
      const peek = await decide({}, {}, 'peek')
      expect(peek).toMatchObject({ allowed: false, limits: [{ remaining: 0 }] })
      const going = check()
      await time.pass(60_000)
      const { startedAt, endedAt } = await going
      // A timer fires 1 ms after the turn.
      expect(endedAt - startedAt).toBe(peek.retryAfterMs! + 1)
    }
  }))

test('A decision that has waited has the time of its charge, so that its refund returns the units.', () =>
  inVirtualTime(async (time) => {
    for (const algorithm of algorithms) {
      const policy = line({
        ...bucket,
        algorithm,
        burst: undefined,
        limit: 5,
        window: '2s',
        wait: '5s',
      })
      const { check } = heldWorld(time).isolate([policy])
      const results = await burst(time, 8, () => check())
      const { decision, endedAt } = results.at(-1)!
      expect(decision).toMatchObject({ allowed: true, decidedAt: endedAt })
    }
  }))

test('Requests that a policy of another key refuses leave no line in the objects of those that wait.', () =>
  inVirtualTime(async (time) => {
    for (const algorithm of algorithms) {
      const { check } = heldWorld(time).isolate([
        line({
          ...bucket,
          algorithm,
          burst: undefined,
          key: 'header:x-user',
          name: 'own',
          wait: '20s',
        }),
        line({ name: 'export', limit: 3, window: '30s', match: { header: { 'x-export': 'yes' } } }),
      ])
      for (let n = 0; n < 3; n += 1) void check({ 'x-user': `${n}`, 'x-export': 'yes' })
      await time.pass(10)
      const going = Array.from({ length: 30 }, () => check({ 'x-user': 'ann', 'x-export': 'yes' }))
      await time.pass(50)
      expect((await Promise.all(going)).filter(({ allowed }) => allowed)).toEqual([])
      const plain = check({ 'x-user': 'ann' })
      await time.pass(20_000)
      const { allowed, startedAt, endedAt } = await plain
      expect([allowed, endedAt - startedAt], algorithm).toEqual([true, 0])
    }
  }))

test('A reset by an operator ends the line also of 200 requests whose clients have gone.', () =>
  inVirtualTime(async (time) => {
    for (const algorithm of algorithms) {
      const policy = line({ ...bucket, algorithm, burst: undefined, wait: '30s' })
      const { check, operate } = heldWorld(time).isolate([policy])
      for (let n = 0; n < 200; n += 1) void check({}, time.sleep(50))
      await time.pass(60)
      void operate({ mode: 'reset' })
      await time.pass(1)
      const going = check()
      await time.pass(20_000)
      const { allowed, startedAt, endedAt } = await going
      expect([allowed, endedAt - startedAt], algorithm).toEqual([true, 0])
    }
  }))

test('A promise `closed` that rejects ends the wait, as one that resolves.', () =>
  inVirtualTime(async (time) => {
    const { check } = heldWorld(time).isolate([line({ ...bucket, limit: 1, burst: 1, wait: '5s' })])
    void check()
    const going = check(
      {},
      time.sleep(100).then(() => Promise.reject(new Error('reset'))),
    )
    await time.pass(10_000)
    const { allowed, startedAt, endedAt } = await going
    expect([allowed, endedAt - startedAt]).toEqual([false, 100])
  }))
