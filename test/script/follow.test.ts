import { expect, test } from 'vitest'
import { Model, type ModelRequest } from '../model/model.ts'
import { policyOf, start } from '../support/ask.ts'
import { law } from '../support/law.ts'
import { each, peek, reachState } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { snapshot } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
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
