import { expect, test } from 'vitest'
import { keyOf, Model, type ModelLimit, type ModelRequest } from '../model/model.ts'
import { policyOf, start } from '../support/ask.ts'
import { forward, law } from '../support/law.ts'
import { each, peek, reachState } from '../support/reached-state.ts'
import { type Call, capacityOf, formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import type { Schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { read, snapshot } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const isFollow = ({ mode }: { mode: ModelRequest['mode'] }) => mode === 'follow'

/** Returns the schedule with separate policies for `follow` requests. They use the records of the other policies. */
const ownPolicies = ({ policies, steps, ...rest }: Schedule): Schedule => ({
  ...rest,
  policies: [
    ...policies,
    ...policies.map((policy) => ({ ...policy, tag: `${policy.tag}-follow` })),
  ],
  steps: steps.map((step) => ({
    ...step,
    requests: step.requests.map((ask) => ({
      ...ask,
      limits: ask.limits.map((row) =>
        isFollow(ask) ? { ...row, policy: row.policy + policies.length } : row,
      ),
    })),
  })),
})

/** Returns true if a stored state is live at `now` and belongs to an enforced policy. Entries of a log always match. */
function isEnforcedAndLive(state: string, now: number): boolean {
  const [tag, time, life] = state.split(':')
  return !tag!.endsWith('-follow') && (life === undefined || Number(time) + Number(life) > now)
}

// Every write drops states that have run out, also a write by a `follow`. This is visible only if the clock moves back,
// so the clock of this law moves forward only.
law(
  'A follow request changes no byte of other policies and no number in their replies.',
  async (plan) => {
    const { calls, subjects } = runOnOracle(forward(ownPolicies(plan)))
    const twins = new Map(subjects.map((subject) => [subject, newSubject()]))
    const twin = (row: ModelLimit) => ({ ...row, subject: twins.get(row.subject)! })

    const without = calls.map(({ now, requests }) => ({
      now,
      requests: requests
        .filter((request) => !isFollow(request))
        .map((request) => ({ ...request, limits: request.limits.map(twin) })),
    }))

    /** Returns the enforced replies, and the enforced states after each call. */
    const run = (some: Call[]) => {
      const enforced = some.flatMap(({ requests }) => requests.filter((one) => !isFollow(one)))
      const keys = [...new Set(enforced.flatMap(({ limits }) => limits.map(keyOf)))]
      return Promise.all(
        some.map(async ({ now, requests }) => {
          const [reply, stored] = await Promise.all([
            requests.length > 0 ? server.decide(requests, now) : undefined,
            Promise.all(keys.map((key) => read(server, key))),
          ])
          return {
            replies: reply?.states.filter((_, index) => !isFollow(requests[index]!)) ?? [],
            states: stored.map(({ states }) =>
              states.filter((state) => isEnforcedAndLive(state, now)),
            ),
          }
        }),
      )
    }
    const [beside, alone] = await Promise.all([run(calls), run(without)])
    expect(beside, formatCalls(calls)).toEqual(alone)
  },
  { single: { requests: 4 }, mixed: { requests: 8 } },
)

law(
  'After a refusal, a peek or a refund, a follow request writes nothing and replies like a peek.',
  async (plan) => {
    const { limits, now, keys, story } = await reachState(server, plan)
    const before = await snapshot(server, keys)
    await each(limits, async (row) => {
      const { remaining } = await peek(server, row, now)
      const first: ModelRequest[] = [
        { mode: 'take', limits: [{ ...row, cost: remaining + 1 }] },
        {
          mode: 'take',
          limits: [...limits.filter((other) => other !== row), { ...row, cost: remaining + 1 }],
        },
        { mode: 'peek', limits: [row] },
        { mode: 'refund', limits: [{ ...row, cost: 0 }] },
      ]
      const followers = [limits, [row], [{ ...row, cost: capacityOf(row.terms) + 1 }], [row]]
      const following = (mode: 'follow' | 'peek') => followers.map((limits) => ({ mode, limits }))
      for (const one of first) {
        const follows = await server.decide([one, ...following('follow')], now)
        const peeks = await server.decide([one, ...following('peek')], now)
        expect(follows, story).toEqual(peeks)
      }
    })
    expect(await snapshot(server, keys), story).toEqual(before)
  },
  { mixed: { policies: 3, subjects: 2 } },
)

const policies = ['one', 'two', 'three'].map((tag, index) =>
  policyOf({ tag, limit: index + 1, windowMs: 60_000 }),
)

/** Calls of requests at a cost of 1. Each request has the units that remain after it, or `refused`. */
const cases: [claim: string, calls: string[]][] = [
  [
    'charges after an admitted take, and does not charge after a refused take',
    ['take one: 0, follow three: 2', 'take one: refused, follow three: 2'],
  ],
  [
    'refuses neither the next take nor another follow request',
    [
      'take three: 2, follow one: 0, follow one: refused, follow two: 1, take three: 1, follow two: 0',
    ],
  ],
  [
    'depends only on the nearest earlier request of another mode',
    ['take one: 0, take one: refused, follow two: 2, take three: 2, follow two: 1'],
  ],
  [
    'charges at the beginning of a call, regardless of other follow requests before it',
    ['follow one: 0, follow one: refused, follow two: 1', 'follow two: 0', 'follow two: refused'],
  ],
  [
    'does not charge after a peek or a refund, even if an admitted take comes before them',
    ['take three: 2, peek three: 2, follow two: 2, take three: 1, refund three: 2, follow two: 2'],
  ],
  [
    'charges its limits together or not at all',
    ['follow one+two: 0+1', 'follow one+two: refused+1'],
  ],
]

test.each(cases)('A follow request %s.', async (_, calls) => {
  const subject = newSubject()
  const model = new Model()
  for (const call of calls) {
    const asks = call
      .split(', ')
      .map((ask) => ask.split(/ |: /) as [ModelRequest['mode'], string, string])
    const requests = asks.map(
      ([mode, names]): ModelRequest => ({
        mode,
        limits: names
          .split('+')
          .map((name) => ({ subject, terms: policies.find(({ tag }) => tag === name)!, cost: 1 })),
      }),
    )
    const reply = await server.decide(requests, start)
    const answers = reply.states.map((rows) =>
      rows.map(({ allowed, remaining }) => (allowed ? remaining : 'refused')).join('+'),
    )
    expect(answers).toEqual(asks.map(([, , answer]) => answer))
    expect(reply).toEqual(model.decide(requests, start))
  }
})
