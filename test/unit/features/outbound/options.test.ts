import { expect, test } from 'vitest'
import { leases } from '../../../../src/features/leases/index.ts'
import { type OutboundOptions, outbound } from '../../../../src/features/outbound/index.ts'

const policy = { name: 'calls', limit: 10, window: '1m' } as const
const problemOf = (options: object) => {
  try {
    outbound(fetch, options as OutboundOptions)
    return 'none'
  } catch (error) {
    return (error as Error).message
  }
}

test('Options that are invalid, or have no effect on calls, are errors.', () => {
  expect(problemOf({ policies: [policy] })).toBe('none')
  expect(problemOf({ policies: [] })).toBe('policies: expected at least one policy, got []')
  expect(problemOf({ policies: [policy], wait: 'soon' })).toContain('wait: expected a duration')
  expect(problemOf({ policies: [policy], maxWaiting: 0 })).toContain('maxWaiting: expected')
  expect(problemOf({ policies: [policy], origin: 'zone' })).toContain('origin')
  expect(problemOf({ policies: [{ ...policy, mode: 'shadow' }] })).toContain('policies[0].mode')
  expect(problemOf({ policies: [{ ...policy, limit: 0 }] })).toContain('policies[0].limit')
  expect(problemOf({ policies: [policy], use: [leases()] })).toContain(
    'use[0]: expected no leases()',
  )
})

test('Policies with different keys are an error that says how to have both.', () => {
  const policies = [policy, { ...policy, name: 'own', key: 'header:x-tenant' }]
  expect(problemOf({ policies })).toContain('outbound(outbound(fetch, …), …)')
})
