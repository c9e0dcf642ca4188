/** What an expectation that holds rests on, in words. */

import { spanText } from '../../src/core/base/duration.ts'
import type { Config, Policy } from '../../src/core/config/parse.ts'
import { checkExpectations, type HeldExpectation } from '../../src/lint/expect/expectations.ts'
import { titleOf } from '../../src/lint/expect/text.ts'
import type { Facts } from '../../src/lint/facts.ts'

/** One line for each expectation that holds. None if the expectations do not parse. */
export const heldTexts = (facts: Facts): string[] =>
  checkExpectations(facts).flatMap(({ held }) => (held ? textOf(held, facts.config) : []))

function textOf(held: HeldExpectation, config: Config): string {
  const { expectation, requests, policies } = held
  const expected = `${titleOf(expectation)}: at most ${expectation.atMost} in ${spanText(expectation.inMs)}.`
  if (policies.length === 0) return `${expected} deny refuses all of them.`
  const names = policies.map(({ name }) => `"${name}"`).join(' and ')
  const admit = policies.length > 1 ? 'admit' : 'admits'
  return [
    `${expected} ${names} ${admit} ${requests}.`,
    ...outage(held),
    ...conditionsOf(policies, config),
  ].join(' ')
}

/** What passes while the database does not answer. */
function outage({ policies, requests }: HeldExpectation): string[] {
  const answers = policies.map(({ onStoreError }) => onStoreError)
  if (answers.includes('allow')) return ['Without the database any number passes (onStoreError).']
  if (!answers.includes('local')) return []
  const share = Math.max(...policies.map(({ localShare }) => localShare))
  return [`Without the database each isolate admits ${Math.ceil(share * requests)} more.`]
}

/** What else could raise a bound. */
function conditionsOf(policies: Policy[], { live, clock }: Config): string[] {
  const any = (test: (policy: Policy) => unknown) => policies.some(test)
  return [
    ...(any(({ overrides }) => overrides) ? ['An operator may set other limits.'] : []),
    ...(any(({ cost }) => cost.header) ? ['A trusted proxy sets its own costs.'] : []),
    ...(any(({ lease, algorithm }) => lease && algorithm === 'token-bucket')
      ? ['Each isolate may hold leased units besides.']
      : []),
    ...(live ? ['Live policies may replace these.'] : []),
    ...(clock === 'edge' ? ['The clocks of isolates may differ.'] : []),
  ]
}
