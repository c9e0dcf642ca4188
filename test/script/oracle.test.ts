import { expect, test } from 'vitest'
import { keyOf, recordOf } from '../model/model.ts'
import { law, lawRuns } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import type { Schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { clock, expectEqual, predictStates, read } from '../support/stored-state.ts'

const server = useServer()

const matchesOracle = async (plan: Schedule) => {
  const { calls, replies, stored: predictions } = runOnOracle(plan)
  const answers = await Promise.all(
    calls.map(async ({ now, requests }) => {
      const limits = requests.flatMap(({ limits }) => limits)
      // The penalty of a log is stored in the record.
      const keys = [...new Set(limits.flatMap((row) => [keyOf(row), recordOf(row.subject)]))]
      const [from, reply, stored, to] = await Promise.all([
        clock(server),
        server.decide(requests, now),
        Promise.all(keys.map((key) => read(server, key))),
        clock(server),
      ])
      return { from, reply, keys, stored, to }
    }),
  )
  answers.forEach(({ from, reply, keys, stored, to }, index) => {
    const story = formatCalls(calls.slice(0, index + 1))
    expectEqual(reply, replies[index], story)
    keys.forEach((key, k) => {
      const { states, expires } = stored[k]!
      const predicted = predictions[index]!.get(key)
      expectEqual(states, predictStates(key, predicted), story)
      if (server.objects) return // an object keeps the expiry of a row that does not change
      if (predicted?.px === undefined || predicted === predictions[index - 1]?.get(key)) return
      expect(expires - predicted.px, story).toBeGreaterThanOrEqual(from)
      expect(expires - predicted.px, story).toBeLessThanOrEqual(to)
    })
  })
}

const claim = 'Every reply and every stored number equals that of the oracle'
law(`${claim}.`, matchesOracle, {}, lawRuns)
law(`${claim}, with penalties and operators.`, matchesOracle, {
  single: { penalties: true, operators: true },
  mixed: { penalties: true, operators: true },
})
law(`${claim}, with floors, debts and several plans on one key.`, matchesOracle, {
  single: { floors: true, debts: true, plans: 2, steps: 30 },
  mixed: { floors: true, debts: true, plans: 2, penalties: true },
})
law(`${claim}, with limits of operators, floors and plans.`, matchesOracle, {
  single: { overrides: true, operators: true, floors: true, debts: true, plans: 1, steps: 30 },
  mixed: { overrides: true, operators: true, penalties: true, floors: true, plans: 2 },
})

test.skipIf(server.objects)('The laws have also compared compiled scripts.', () => {
  expect(server.compiled()).toBeGreaterThan(lawRuns)
})
