import { expect, test } from 'vitest'
import { keyOf, type ModelLimit, type ModelRequest, recordOf } from '../model/model.ts'
import { ask, start as now, policyOf, rowOf } from '../support/ask.ts'
import { completeLimit } from '../support/complete-limit.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { useServer } from '../support/server.ts'
import { snapshot } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const shapes = {
  single: { penalties: true },
  mixed: { penalties: true, policies: 4, subjects: 2 },
}

/** Copies the keys of a row to a new subject, and returns the row of that subject. */
async function copied(row: ModelLimit): Promise<ModelLimit> {
  const copy = { ...row, subject: newSubject() }
  await Promise.all([
    server.send('COPY', keyOf(row), keyOf(copy)),
    server.send('COPY', recordOf(row.subject), recordOf(copy.subject)),
  ])
  return copy
}

const operate = (mode: ModelRequest['mode'], row: ModelLimit, now: number, banMs?: number) =>
  ask(server, mode, row, now, banMs === undefined ? {} : { banMs })

const isApart = (row: ModelLimit) => keyOf(row) !== recordOf(row.subject)
const contentOf = (row: ModelLimit) => server.send('GET', recordOf(row.subject))

/** Returns a record without the states of these tags. A write also drops the states that have run out. */
function without(content: unknown, tags: string[], now: number): string | null {
  if (typeof content !== 'string') return null
  const [version, ...states] = content.split(';').slice(0, -1)
  const isNamed = (state: string) => tags.includes(state.split(':')[0]!)
  if (!states.some(isNamed)) return content
  const kept = states.filter((state) => {
    const [, time, life] = state.split(':').map(Number)
    return !isNamed(state) && time! + life! > now
  })
  return kept.length > 0 ? `${[version, ...kept].join(';')};` : null
}

/** Compares the stored states only, because they determine all later replies. */
law(
  'A reset leaves the keys as if its states had never existed, and reports a full quota.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const copy = completeLimit(await copied(row), now)
      const { tag } = copy.terms
      const ban = copy.penalty!.tag
      const before = await contentOf(copy)
      const answer = await operate('reset', copy, now)
      const untouched = completeLimit({ ...copy, subject: newSubject() }, now)
      expect(answer, story).toEqual(await peek(server, untouched, now))
      const tags = [...(isApart(copy) ? [] : [tag]), ban, `${ban}-ban`]
      expect(await contentOf(copy), story).toBe(without(before, tags, now))
      if (isApart(copy)) expect(await server.send('EXISTS', keyOf(copy)), story).toBe(0)
    })
  },
  shapes,
)

law(
  'A ban by an operator refuses until exactly its end, replaces a running ban, and changes no other byte.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const copy = completeLimit(await copied(row), now)
      const { tag, maxMs } = copy.penalty!
      const keys = [keyOf(copy)].filter(() => isApart(copy))
      const [before, apart] = [await contentOf(copy), await snapshot(server, keys)]
      for (const banMs of [maxMs, Math.ceil(maxMs / 2)]) {
        const answer = await operate('ban', copy, now, banMs)
        expect(answer, story).toMatchObject({ allowed: false, bannedForMs: banMs })
      }
      const banMs = Math.ceil(maxMs / 2)
      // The writes have also dropped the states that have run out.
      const own = `${tag}-ban:${now}:${2 * banMs}:${banMs}`
      const others = without(`${before ?? '1;'}${tag}:0:0:0;`, [tag, `${tag}-ban`], now) ?? '1;'
      const states = (text: unknown) => String(text).split(';').sort()
      expect(states(await contentOf(copy)), story).toEqual(states(`${others}${own};`))
      expect(await snapshot(server, keys), story).toEqual(apart)

      if (!isReachable(now + banMs)) return
      const [last, then, free] = await Promise.all([
        peek(server, copy, now + banMs - 1),
        peek(server, copy, now + banMs),
        wouldAdmit(server, [{ ...copy, cost: 0 }], now + banMs - 1),
      ])
      expect(last, story).toMatchObject({ allowed: false, bannedForMs: 1 })
      expect(then.bannedForMs, story).toBeUndefined()
      expect(free, story).toBe(false)
    })
  },
  shapes,
)

const penalty = { after: 2, withinMs: 60_000, banMs: 10_000, maxMs: 60_000 }
const minute = { limit: 2, windowMs: 60_000, burst: 2 }
/** Three units of a limit with a penalty. */
const penalRow = () => completeLimit(rowOf({ ...minute, penalty }, 3), now)

test.each(['reset', 'ban', 'unban'] as const)(
  'A follow request after a request of mode %s is decided like a peek.',
  async (mode) => {
    const second = rowOf(minute)
    const { states } = await server.decide(
      [
        { mode, limits: [{ ...penalRow(), cost: 1 }] },
        { mode: 'follow', limits: [second] },
      ],
      now,
    )
    expect(states[1]![0]).toMatchObject({ allowed: true, remaining: 2 })
  },
)

test.each(['fixed-window', 'sliding-log', 'concurrency'] as const)(
  '%s: A later request of the call sees the reset, and its charge is stored.',
  async (algorithm) => {
    const own = rowOf({ ...minute, algorithm }, 2)
    const row = (slot: string): ModelLimit => ({ ...own, slot })
    const take = (slot: string): ModelRequest => ({ mode: 'take', limits: [row(slot)] })
    const reset: ModelRequest = { mode: 'reset', limits: [row('a')] }
    /** The remaining units after each request, or `refused`. */
    const answersOf = async (requests: ModelRequest[], time: number) => {
      const { states } = await server.decide(requests, time)
      return states.map(([state]) => (state!.allowed ? state!.remaining : 'refused'))
    }
    const calls = [take('a'), take('b'), reset, take('b'), reset, reset, take('c')]
    expect(await answersOf(calls, now)).toEqual([0, 'refused', 2, 0, 2, 2, 0])
    const [charged, full] = [
      [take('d'), reset, take('d')],
      [reset, take('e'), take('f')],
    ]
    expect(await answersOf(charged, now + 1)).toEqual(['refused', 2, 0])
    expect(await answersOf(full, now + 2)).toEqual([2, 0, 'refused'])
  },
)

test('A reset reports a cost that never fits, and needs no slot id.', async () => {
  for (const algorithm of ['fixed-window', 'sliding-log', 'concurrency', 'token-bucket'] as const) {
    const row = { ...rowOf({ ...minute, algorithm }, 3), slot: '' }
    expect(await operate('reset', row, now)).toEqual({
      allowed: false,
      remaining: 2,
      retryAfterMs: null,
      resetAfterMs: 0,
      nextAfterMs: 0,
    })
  }
})

test('The next ban after a ban by an operator is twice as long, and one without a length is the first of the penalty.', async () => {
  const row = penalRow()
  expect(await operate('ban', row, now)).toMatchObject({ bannedForMs: 10_000 })
  await operate('ban', row, now, 12_000)
  await ask(server, 'take', row, now + 12_000)
  expect(await ask(server, 'take', row, now + 12_001)).toMatchObject({ bannedForMs: 24_000 })
})

test('A ban longer than the maximum, or without a penalty, is an error and writes nothing.', async () => {
  const row = penalRow()
  const { subject } = row
  const free: ModelLimit = { subject, terms: policyOf({ tag: 'u' }), cost: 1 }
  const ban = (limits: ModelLimit[], banMs: number): ModelRequest => ({
    mode: 'ban',
    limits,
    banMs,
  })
  const messageOf = (...requests: ModelRequest[]) =>
    server.decide(requests, now).then(String, String)
  expect(await messageOf(ban([row], 60_001))).toMatch('ERR sluice: request 1: unexpected banMs')
  expect(await messageOf(ban([row], 0))).toMatch('ERR sluice: request 1: unexpected banMs')
  expect(await messageOf(ban([row, free], 1), ban([free], 1))).toMatch(
    'ERR sluice: request 2: unexpected mode (a ban needs a penalty)',
  )
  expect(await server.send('EXISTS', recordOf(subject))).toBe(0)
  await server.decide([ban([free, row], 60_000)], now)
  expect(await server.send('EXISTS', recordOf(subject))).toBe(1)
})

test('A ban and an unban take effect even if the clock has moved back.', async () => {
  for (const back of [1, 59_999, 60_000, 100_000]) {
    const row = penalRow()
    await operate('ban', row, now, 60_000)
    expect(await operate('ban', row, now - back, 7)).toMatchObject({ bannedForMs: 7 })
    expect((await operate('unban', row, now - back)).bannedForMs).toBeUndefined()
  }
})
