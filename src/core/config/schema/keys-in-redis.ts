import { hasOwnKey } from '../../base/own-key.ts'
import type { Policy } from './policy.ts'

/** The keys in Redis that one call of the script takes. */
export const MAX_KEYS = 128

/** The keys in Redis that a quota needs. A log and slots have a key of their own; a ban and the limit of an operator are in the record of the client. */
export const keysOf = ({
  algorithm,
  penalty,
  overrides,
}: Partial<Pick<Policy, 'algorithm' | 'penalty' | 'overrides'>>): number =>
  hasOwnKey(algorithm) && (penalty || overrides) ? 2 : 1

/** The keys in Redis that the policies need, if each has one quota. */
export const keysOfAll = (policies: readonly Parameters<typeof keysOf>[0][]): number =>
  policies.reduce((sum, policy) => sum + keysOf(policy), 0)
