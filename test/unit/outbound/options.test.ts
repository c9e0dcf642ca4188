import { expect, test } from 'vitest'
import { type OutboundOptions, outbound } from '../../../src/outbound/index.ts'
import { parseOptions } from '../../../src/outbound/options.ts'
import { leases } from '../../support/features.ts'

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

test('All fields without effect are told at once.', () => {
  const values = { distinct: 'ip', lease: true, mode: 'enforce', overrides: true, wait: '1s' }
  const message = problemOf({ origin: 'zone', wait: 'soon', policies: [{ ...policy, ...values }] })
  for (const name of Object.keys(values))
    expect(message).toContain(`policies[0].${name}: expected no value (outbound has no clients`)
  expect(message).toContain('wait: expected a duration')
  expect(message).toContain(
    'origin: expected one of the fields allow, caseSensitivePaths, clock, deadline, namespace, policies, store, tables, use, wait, maxWaiting, env, waitUntil',
  )
})

test('Policies with different keys are an error that says how to have both.', () => {
  const policies = [policy, { ...policy, name: 'own', key: 'header:x-tenant' }]
  expect(problemOf({ policies })).toContain('outbound(outbound(fetch, …), …)')
})

test('The store has 3 s to answer by default, or the wait of a call if it is shorter, and at least 300 ms.', () => {
  const deadlineOf = (options: Partial<OutboundOptions>) =>
    parseOptions({ policies: [policy], ...options }).limiter.config.policies[0]!.deadlineMs
  expect(deadlineOf({})).toBe(3_000)
  expect(deadlineOf({ wait: '2s' })).toBe(2_000)
  expect(deadlineOf({ wait: '50ms' })).toBe(300)
  expect(deadlineOf({ deadline: '5s', wait: '2s' })).toBe(5_000)
  expect(deadlineOf({ policies: [{ ...policy, deadline: '100ms' }] })).toBe(100)
})
