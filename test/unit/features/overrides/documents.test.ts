/** Limits of operators that are changed at the same time, on a real Redis. */

import { expect, test } from 'vitest'
import { allParts } from '../../../../cli/replay/decide/script-parts.ts'
import { credentialsOf } from '../../../../src/core/base/bindings.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Store } from '../../../../src/core/connection/store.ts'
import { createUpstashStore } from '../../../../src/core/connection/upstash/upstash.ts'
import type { Resizing } from '../../../../src/core/decide/operate.ts'
import { operate } from '../../../../src/core/decide/operate.ts'
import type { LimiterParts } from '../../../../src/core/decide/question.ts'
import { changeLimit, listLimits } from '../../../../src/features/overrides/documents.ts'
import { useDatabase } from '../../../support/database.ts'
import { overrides } from '../../../support/features.ts'

const { env } = useDatabase()
const PUT: Resizing = { mode: 'override', units: 50, forMs: 3_600_000 }
const DELETE: Resizing = { mode: 'restore' }

/** Runs one operation up to its `steps`-th call, then the other one, then the rest. Returns the limit of the key, and the listed ones. */
async function overtaken(first: Resizing, second: Resizing, steps: number) {
  const config = parseConfig({
    use: [overrides()],
    policies: [{ name: `p${crypto.randomUUID()}`, limit: 5, window: '1h', overrides: true }],
  })
  const policy = config.policies[0]!
  const match = {
    terms: policy,
    partitionKey: [['ip', '203.0.113.7'] as [string, string]],
    cost: 1,
  }
  const upstash = createUpstashStore({
    ...credentialsOf(env),
    deadlineMs: 10_000,
    lua: allParts,
  })
  const nameSubject: LimiterParts['nameSubject'] = (key) => JSON.stringify(key).replace(/\W/g, '')
  const partsOf = (store: Store): LimiterParts => ({
    store,
    nameSubject,
    onStoreError(error) {
      throw error
    },
  })
  const waitUntil = () => {}
  const put = (operation: Resizing, store: Store) =>
    changeLimit(operation, match, partsOf(store), waitUntil)

  let calls = 0
  const meanwhile = async () => {
    calls += 1
    if (calls === steps + 1) await put(second, upstash)
  }
  await put(PUT, upstash)
  await put(first, {
    decide: async (...call) => {
      await meanwhile()
      return upstash.decide(...call)
    },
    decideEach: async (...call) => {
      await meanwhile()
      return upstash.decideEach(...call)
    },
  })
  expect(calls).toBeGreaterThan(steps)
  const status = await operate({ mode: 'peek' }, [match], partsOf(upstash), { waitUntil })
  const listed = await listLimits(policy, config, nameSubject, env)
  return { status, listed: listed.map(({ limit }) => limit) }
}

test.each([
  ['A removal that a change overtakes', DELETE, { ...PUT, units: 60 }],
  ['A change that a removal overtakes', PUT, DELETE],
])('%s leaves no limit in force that is not listed.', async (_, first, second) => {
  for (const steps of [0, 1, 2]) {
    const { status, listed } = await overtaken(first, second, steps)
    const [limit] = 'limits' in status ? status.limits : []
    if (limit!.overriddenForMs) expect(listed).toEqual([limit!.limit])
  }
})
