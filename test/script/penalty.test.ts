import { expect, test } from 'vitest'
import { Model, type ModelRequest, recordOf } from '../model/model.ts'
import { policyOf, rowOf, start } from '../support/ask.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { kinds, type Schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { read, snapshot } from '../support/stored-state.ts'

const server = useServer()

/** Small windows and quotas, so that many requests are refused. */
const single = { penalties: true, small: true }
const mixed = { penalties: true, small: true, policies: 3, subjects: 2 }

/** Returns the schedule with takes instead of peeks and refunds, so that more requests are refused. */
const eager = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: step.requests.map((ask) => ({
      ...ask,
      mode: ask.mode === 'peek' || ask.mode === 'refund' ? 'take' : ask.mode,
    })),
  })),
})

law(
  'A ban ends exactly after bannedForMs, and not a millisecond earlier, even if the clock moves back.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, eager(plan))
    await each(limits, async (row) => {
      const { bannedForMs = 0, allowed, retryAfterMs } = await peek(server, row, now)
      if (bannedForMs === 0) return
      expect(allowed, story).toBe(false)
      for (const back of [1, row.terms.windowMs].filter((ms) => ms <= now)) {
        const earlier = await peek(server, row, now - back)
        expect(earlier, story).toMatchObject({ allowed: false, bannedForMs: bannedForMs + back })
      }
      if (!isReachable(now + bannedForMs)) return
      const [then, before, free] = await Promise.all([
        peek(server, row, now + bannedForMs),
        peek(server, row, now + bannedForMs - 1),
        wouldAdmit(server, [{ ...row, cost: 0 }], now + bannedForMs - 1),
      ])
      expect(then.bannedForMs, story).toBeUndefined()
      expect(before, story).toMatchObject({ allowed: false, bannedForMs: 1 })
      expect(free, story).toBe(false)
      // After the ban, the limit itself decides.
      const wait = now + retryAfterMs!
      const tried = await Promise.all([
        wouldAdmit(server, [row], wait),
        wouldAdmit(server, [row], wait - 1),
      ])
      expect(tried, story).toEqual([true, false])
    })
  },
  { single, mixed },
)

law(
  'The retries of a banned client write nothing.',
  async (plan) => {
    const { limits, now, keys, story } = await reachState(server, eager(plan))
    const before = await snapshot(server, keys)
    const views = await Promise.all(limits.map((row) => peek(server, row, now)))
    await Promise.all(
      limits.map(async (row, index) => {
        const { bannedForMs = 0 } = views[index]!
        if (bannedForMs === 0) return
        const cost = 2 ** 51
        const requests: ModelRequest[] = [
          { mode: 'take', limits: [row] },
          { mode: 'take', limits: [{ ...row, cost }] },
          { mode: 'follow', limits: [{ ...row, cost }] },
          { mode: 'peek', limits: [{ ...row, cost }] },
        ]
        for (const time of [now, now + bannedForMs - 1, now - 1]) {
          if (time < 0 || !isReachable(time)) continue
          const { states } = await server.decide(requests, time)
          for (const [state] of states) {
            expect(state, story).toMatchObject({ bannedForMs: now + bannedForMs - time })
            expect(state!.allowed, story).toBe(false)
          }
        }
      }),
    )
    expect(await snapshot(server, keys), story).toEqual(before)
  },
  { single, mixed },
)

// The tests below use a limit of 1 per hour, so that every request after the first is refused.

const hour = 3_600_000
const terms = { after: 3, withinMs: 1000, banMs: 100, maxMs: 800 }
const one = policyOf({ limit: 1, windowMs: hour, burst: 1 })

/** A client that has used its quota. `ask` returns the rest of its ban. */
async function spent(penalty = terms, policy = one) {
  const own = rowOf(policy)
  const { subject } = own
  const model = new Model()
  const send = async (requests: ModelRequest[], at: number) => {
    const sent = requests.map((request) => ({
      ...request,
      limits: request.limits.map((row) => ({ slot: 'more', values: ['more'], ...row })),
    }))
    const reply = await server.decide(sent, start + at)
    expect(reply).toEqual(model.decide(sent, start + at))
    return reply.states
  }
  const row = (changed: Partial<typeof terms> = {}, cost = 1) => ({
    ...own,
    cost,
    penalty: { tag: 'p', ...penalty, ...changed },
  })
  await send([{ mode: 'take', limits: [{ ...row(), slot: 'first', values: ['first'] }] }], 0)
  return {
    subject,
    send,
    row,
    ask: async (at: number, mode: ModelRequest['mode'] = 'take', changed?: Partial<typeof terms>) =>
      (await send([{ mode, limits: [row(changed)] }], at))[0]![0]!.bannedForMs ?? 0,
    record: async () => (await read(server, recordOf(subject))).states,
  }
}

test('The third refusal within the time starts the ban and reports it.', async () => {
  const { ask } = await spent()
  expect([await ask(0), await ask(500), await ask(999)]).toEqual([0, 0, 100])
  expect([await ask(1000), await ask(1098), await ask(1099)]).toEqual([99, 1, 0])
})

test('Refusals count for the time that begins with the first one, and no longer.', async () => {
  const { ask } = await spent()
  expect([await ask(0), await ask(999), await ask(1000), await ask(1001)]).toEqual([0, 0, 0, 0])
  expect([await ask(1999), await ask(2500)]).toEqual([100, 0])
})

test.each([
  ['immediately is banned twice as long, up to the maximum', 1, 0, [100, 200, 400, 800, 800]],
  [
    'a millisecond before its ban is forgotten is banned twice as long',
    2,
    -1,
    [100, 200, 400, 800],
  ],
  ['when its ban is forgotten is banned for the first length again', 2, 0, [100, 100, 100]],
])('A client that comes back %s.', async (_, times, plus, bans) => {
  const { ask } = await spent({ ...terms, after: 1 })
  let at = 0
  for (const ban of bans) {
    expect(await ask(at)).toBe(ban)
    at += times * ban + plus
  }
})

test('Refusals counted before a ban do not count after it.', async () => {
  const { ask } = await spent()
  expect([await ask(0), await ask(0), await ask(0)]).toEqual([0, 0, 100])
  expect([await ask(100), await ask(100), await ask(101)]).toEqual([0, 0, 200])
})

test('A ban that is forgotten while refusals are counted does not double the next ban.', async () => {
  const { ask } = await spent()
  for (const at of [0, 0, 0]) await ask(at)
  expect([await ask(199), await ask(199), await ask(200)]).toEqual([0, 0, 100])
  expect([await ask(300), await ask(300), await ask(399)]).toEqual([0, 0, 200])
})

test('A peek is not counted as a refusal, and reports the ban.', async () => {
  const { ask } = await spent()
  for (const at of [0, 0, 0, 0]) expect(await ask(at, 'peek')).toBe(0)
  expect([await ask(0), await ask(0), await ask(0), await ask(40, 'peek')]).toEqual([0, 0, 100, 60])
})

test('All refusals of one call count.', async () => {
  const { send, row } = await spent()
  const take: ModelRequest = { mode: 'take', limits: [row()] }
  const states = await send([take, take, take, take], 0)
  expect(states.map(([state]) => state!.bannedForMs ?? 0)).toEqual([0, 0, 100, 100])
})

test('A penalty counts only refusals by its own limit, and during a ban no other limit is charged.', async () => {
  const { send, row, subject } = await spent({ ...terms, after: 2 })
  const wide = {
    subject,
    terms: { ...one, tag: 'wide', limit: 9 },
    cost: 1,
    penalty: { tag: 'q', ...terms, after: 1 },
  }
  const both: ModelRequest = { mode: 'take', limits: [wide, row()] }
  const [first, second, third] = await send([both, both, both], 0)
  expect(first!.map(({ bannedForMs }) => bannedForMs)).toEqual([undefined, undefined])
  expect(second!.map(({ bannedForMs }) => bannedForMs)).toEqual([undefined, 100])
  expect(third!.map(({ remaining }) => remaining)).toEqual([9, 0])

  // A row with room is refused only because of the ban of its own limit. The refusal by `wide` starts its own ban.
  const large = { ...wide, cost: 10 }
  const [fourth] = await send([{ mode: 'take', limits: [large, { ...row(), cost: 0 }] }], 50)
  expect(fourth).toMatchObject([
    { allowed: false, retryAfterMs: null, bannedForMs: 100 },
    { allowed: false, retryAfterMs: 50, bannedForMs: 50 },
  ])
})

test('The wait is the longer of the ban and the wait of the limit, and null if the cost never fits.', async () => {
  const { send, row } = await spent({ ...terms, after: 1, banMs: 2 * hour, maxMs: 2 * hour })
  const [longBan] = (await send([{ mode: 'take', limits: [row()] }], 0))[0]!
  expect(longBan).toMatchObject({ retryAfterMs: 2 * hour, bannedForMs: 2 * hour })
  const [never] = (await send([{ mode: 'peek', limits: [row({}, 2)] }], 0))[0]!
  expect(never).toMatchObject({ retryAfterMs: null, bannedForMs: 2 * hour })

  const short = await spent({ ...terms, after: 1 })
  const [shortBan] = (await short.send([{ mode: 'take', limits: [short.row()] }], 0))[0]!
  expect(shortBan).toMatchObject({ retryAfterMs: hour, bannedForMs: 100 })
})

test('The penalty of a follow request bans only that request, and counts only refusals of requests that would be charged.', async () => {
  const { send, row, subject } = await spent({ ...terms, after: 2 })
  const free: ModelRequest = {
    mode: 'take',
    limits: [{ subject, terms: { ...one, tag: 'free', limit: 3 }, cost: 1 }],
  }
  const follow: ModelRequest = { mode: 'follow', limits: [row()] }
  const peek: ModelRequest = { ...free, mode: 'peek' }
  const bans = (states: { bannedForMs?: number }[][]) => states.map(([s]) => s!.bannedForMs ?? 0)
  expect(bans(await send([peek, follow, follow, free, follow, follow], 0))).toEqual([
    0, 0, 0, 0, 0, 100,
  ])
  // The ban of a follow request refuses no other request.
  const states = await send([free, follow, free, free, follow], 1)
  expect(states.map(([state]) => state!.allowed)).toEqual([true, false, true, false, false])
})

const changes: [claim: string, changed: Partial<typeof terms>, at: number, bannedFor: number][] = [
  ['A lower maximum ends a running ban earlier.', { maxMs: 60 }, 20, 40],
  ['A maximum below the time since the start of a ban ends the ban at once.', { maxMs: 60 }, 60, 0],
  ['A higher maximum does not change a running ban.', { maxMs: 9999 }, 20, 80],
  ['Another length of the first ban does not change a running ban.', { banMs: 1 }, 20, 80],
  ['Another number of refusals does not change a running ban.', { after: 9 }, 20, 80],
]

test.each(changes)('%s', async (_, changed, at, bannedFor) => {
  const { ask } = await spent({ ...terms, after: 1 })
  expect(await ask(0)).toBe(100)
  expect(await ask(at, 'peek', changed)).toBe(bannedFor)
})

test('After a change of terms, the next ban is at most the new maximum and at least the new length.', async () => {
  const next = async (changed: Partial<typeof terms>) => {
    const { ask } = await spent({ ...terms, after: 1 })
    await ask(0)
    return ask(100, 'take', changed)
  }
  expect(await next({ maxMs: 150 })).toBe(150)
  expect(await next({ banMs: 700 })).toBe(700)
  expect(await next({ banMs: 10 })).toBe(200)
  // With a maximum of 40 the last ban is forgotten at 80.
  expect(await next({ banMs: 10, maxMs: 40 })).toBe(10)
})

test('If `after` is lowered below the number of counted refusals, the next refusal starts a ban.', async () => {
  const { ask } = await spent({ ...terms, after: 5 })
  for (const at of [0, 0, 0]) await ask(at)
  expect(await ask(1, 'peek', { after: 2 })).toBe(0)
  expect(await ask(1, 'take', { after: 2 })).toBe(100)
})

test('The record holds the counted refusals, and then the ban with its length.', async () => {
  const { ask, record } = await spent()
  await ask(5)
  await ask(6)
  expect(await record()).toEqual([`p:${start + 5}:1000:2`, `t:${start}:${hour}:1`])
  await ask(7)
  expect(await record()).toEqual([`p-ban:${start + 7}:200:100`, `t:${start}:${hour}:1`])
})

test.each(kinds.filter((kind) => kind !== 'calendar'))(
  '%s: Its refusals are counted in the record of the subject.',
  async (algorithm) => {
    const { ask, record } = await spent({ ...terms, after: 2 }, { ...one, algorithm })
    expect(await ask(1)).toBe(0)
    expect((await record()).filter((state) => state.startsWith('p'))).toHaveLength(1)
    expect([await ask(2), await ask(101), await ask(102)]).toEqual([100, 1, 0])
  },
)
