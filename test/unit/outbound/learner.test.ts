import { expect, test } from 'vitest'
import { StoreError } from '../../../src/core/base/errors.ts'
import type { PolicyLimit } from '../../../src/core/decide/limit.ts'
import { createLearner } from '../../../src/outbound/learner.ts'
import { storeOf } from '../../support/store-of.ts'

test('A lower limit that the store has not taken is told again by the next response, and once.', async () => {
  const modes: string[] = []
  const store = storeOf(async ([request]) => {
    modes.push(request!.mode)
    if (modes.length === 1) throw new StoreError('unreachable')
    return { decidedAt: Date.now(), states: [[{ allowed: true, remaining: 9 }]] } as never
  })
  const size = { limit: 100, burst: 100, windowMs: 60_000, algorithm: 'fixed-window' }
  const given = { name: 'p', tag: 't', mode: 'enforce', cost: { otherwise: 1 }, overrides: true }
  const terms = { ...given, ...size }
  const limit = { subject: 's', partitionKey: [['a', 'b']], cost: 1, terms }
  const parts = { store, nameSubject: () => 's', onStoreError() {} } as never
  const learn = createLearner(
    () => parts,
    () => {},
  )
  const decision = { limits: [], decidedAt: Date.now() } as never
  for (const _ of [1, 2, 3])
    await learn(
      [limit as unknown as PolicyLimit],
      decision,
      new Headers({ 'x-ratelimit-limit': '50', 'x-ratelimit-remaining': '49' }),
    )
  expect(modes).toEqual(['override', 'override'])
})
