import { expect, test } from 'vitest'
import { memoryParts } from '../../../../site/playground/engine/memory-parts.ts'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { decideList } from '../../../../src/stores/durable-objects/decide.ts'
import { policyOf, start } from '../../../support/ask.ts'
import { law, lawRuns } from '../../../support/law.ts'
import { formatCalls, runOnOracle } from '../../../support/run-on-oracle.ts'
import type { Schedule } from '../../../support/schedules.ts'
import { expectEqual } from '../../../support/stored-state.ts'

const matchesOracle = async (plan: Schedule) => {
  const { calls, replies } = runOnOracle(plan)
  const parts = memoryParts()
  calls.forEach(({ now, requests }, index) => {
    const states = decideList(parts, requests as StoreRequest[], now)
    expectEqual({ decidedAt: now, states }, replies[index], formatCalls(calls.slice(0, index + 1)))
  })
}

const claim = 'The state machine of an object replies like the oracle'
const one = { subjects: 1 }
law(`${claim}.`, matchesOracle, { mixed: one }, lawRuns)
law(`${claim}, with penalties and operators.`, matchesOracle, {
  single: { penalties: true, operators: true },
  mixed: { ...one, penalties: true, operators: true },
})
law(`${claim}, with floors, debts and several plans on one key.`, matchesOracle, {
  single: { floors: true, debts: true, plans: 2, steps: 30 },
  mixed: { ...one, floors: true, debts: true, plans: 2, penalties: true },
})
law(`${claim}, with limits of operators, floors and plans.`, matchesOracle, {
  single: { overrides: true, operators: true, floors: true, debts: true, plans: 1, steps: 30 },
  mixed: { ...one, overrides: true, operators: true, penalties: true, floors: true, plans: 2 },
})

test('A debt in a log has at most 10,000 entries.', () => {
  const parts = memoryParts()
  const terms = { ...policyOf({ algorithm: 'sliding-log' }), localShare: 1 }
  decideList(parts, [{ mode: 'debt', limits: [{ subject: 's', terms, cost: 20_000 }] }], start)
  expect(parts.log(terms.tag)).toHaveLength(10_000)
})
