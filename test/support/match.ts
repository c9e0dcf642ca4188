import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { type Circumstances, createMatcher } from './create-matcher.ts'

/** Terms of a policy for tests that do not depend on them. */
export const base = { limit: 5, window: '10s' } as const
export type Terms = Omit<PolicyOptions, 'limit' | 'window'>

/** The policies that apply to a request: name → partition key. */
export async function met(
  policies: Terms[],
  url: string,
  init: RequestInit = {},
  circumstances: Circumstances = {},
  config: Partial<ConfigOptions> = {},
) {
  const match = createMatcher({
    ...config,
    policies: policies.map((policy) => ({ ...base, ...policy })),
  })
  const { policies: matches } = await match(url, init, circumstances)
  return Object.fromEntries(matches.map(({ terms, partitionKey }) => [terms.name, partitionKey]))
}
/** The names of the policies that apply. */
export const names = async (...args: Parameters<typeof met>) => Object.keys(await met(...args))
