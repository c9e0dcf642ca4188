import { expect } from 'vitest'
import type { StoreReply } from '../../src/core/connection/store.ts'
import { keyOf, type ModelRequest } from '../model/model.ts'
import { law } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { read } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const shapes = {
  single: { requests: 12, steps: 4 },
  mixed: { policies: 3, subjects: 3, requests: 12, steps: 4 },
}

/** Replaces each `follow` of a call by a take, if it follows an admitted take, and by a peek otherwise. */
function apart(requests: ModelRequest[], reply: StoreReply): ModelRequest[] {
  let passed = true
  return requests.map((request, index) => {
    if (request.mode === 'follow') return { ...request, mode: passed ? 'take' : 'peek' }
    passed = request.mode === 'take' && reply.states[index]!.every(({ allowed }) => allowed)
    return request
  })
}

law(
  'The requests of one call get the same decisions as in separate calls.',
  async (plan) => {
    const { calls, subjects } = runOnOracle(plan)
    const twins = new Map(subjects.map((subject) => [subject, newSubject()]))
    const toTwin = ({ limits, ...rest }: ModelRequest): ModelRequest => ({
      ...rest,
      limits: limits.map((row) => ({ ...row, subject: twins.get(row.subject)! })),
    })
    const together = await Promise.all(
      calls.map(({ requests, now }) => server.decide(requests, now)),
    )
    const oneByOne = await Promise.all(
      calls.flatMap(({ requests, now }, index) =>
        apart(requests, together[index]!).map((request) => server.decide([toTwin(request)], now)),
      ),
    )
    expect(
      together.flatMap(({ states }) => states),
      formatCalls(calls),
    ).toEqual(oneByOne.flatMap(({ states }) => states))

    const limits = calls.flatMap(({ requests }) => requests.flatMap(({ limits }) => limits))
    const contents = await Promise.all(
      limits.map(async (row) => {
        const twin = { ...row, subject: twins.get(row.subject)! }
        const pair = await Promise.all([read(server, keyOf(row)), read(server, keyOf(twin))])
        return pair.map(({ states }) => states)
      }),
    )
    for (const [record, twin] of contents) expect(record, formatCalls(calls)).toEqual(twin)
  },
  shapes,
)
