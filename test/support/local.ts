/** Policies and requests for the local store. */
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { defaultFields } from '../../src/features/defaults.ts'

export const policyOf = (options: Partial<PolicyOptions>) =>
  parseConfig({ policies: [{ name: 'a', limit: 10, window: '1s', ...options }] }, defaultFields)
    .policies[0]!
export const take = (
  policy: StoreRequest['limits'][number]['terms'],
  cost = 1,
  subject = 'x',
): StoreRequest => ({
  mode: 'take',
  limits: [{ subject, terms: policy, cost }],
})
