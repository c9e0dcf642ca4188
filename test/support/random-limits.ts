/** Random configurations with small quotas, and a limiter for their policies in memory. */
import fc from 'fast-check'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { algorithms, type State } from '../../src/core/connection/algorithms/index.ts'
import type { Match } from '../../src/core/program/match.ts'
import { match } from './random-conditions.ts'

export const often = <T>(usual: T, ...others: T[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  )

export const key = often<PolicyOptions['key'] & {}>(
  ['ip'],
  ['country'],
  ['header:x-a'],
  ['ip', 'header:x-a'],
  ['path'],
)
const cost = fc.oneof(
  { weight: 4, arbitrary: fc.constant(1) },
  fc.array(
    fc.tuple(match, fc.constantFrom(0, 1, 2)).map(([match, cost]) => ({ ...match, cost })),
    { minLength: 1, maxLength: 3 },
  ),
)
const policy = fc
  .record({
    algorithm: often<PolicyOptions['algorithm'] & {}>(
      'sliding-window',
      'fixed-window',
      'sliding-log',
      'token-bucket',
      'gcra',
    ),
    limit: fc.constantFrom(2, 3, 4, 6),
    window: fc.constantFrom(1000, 2000, 3000, 4000),
    key,
    onMissingKey: often<PolicyOptions['onMissingKey'] & {}>('share', 'skip', 'refuse', {
      key: ['country'],
    }),
    match: fc.oneof(fc.constant({}), match),
    cost,
    mode: often('enforce' as const, 'shadow'),
    align: fc.constantFrom('clock' as const, 'first-request' as const),
  })
  .map(({ align, ...policy }) => ({
    ...policy,
    ...(policy.algorithm === 'fixed-window' && { align }),
  }))
const entry = fc.record({ match, policies: fc.option(fc.subarray(['p0', 'p1'], { minLength: 1 })) })

export const config = fc
  .record({
    policies: fc.array(policy, { minLength: 2, maxLength: 4 }),
    allow: fc.array(entry, { maxLength: 2 }),
    deny: fc.array(match, { maxLength: 2 }),
    caseSensitivePaths: fc.boolean(),
  })
  .map(
    ({ policies, allow, ...rest }): ConfigOptions => ({
      ...rest,
      policies: policies.map((policy, n) => ({ ...policy, name: `p${n}` })) as PolicyOptions[],
      allow: allow.map(({ match, policies }) => ({ ...match, ...(policies && { policies }) })),
    }),
  )

/** Decides one limit of a request. */
export function decide(
  { terms, partitionKey, cost }: Match,
  now: number,
  states: Map<string, State>,
) {
  const subject = JSON.stringify([terms.tag, partitionKey])
  const algorithm = terms.algorithm as keyof typeof algorithms // the generator leaves out concurrency
  return {
    subject,
    outcome: algorithms[algorithm](now, terms, cost, states.get(subject)),
  }
}
