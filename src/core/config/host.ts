/** Checks what policies require of the host of a limiter. A host passes the checks of what it lacks, so other hosts do not load them. */
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import type { FeatureFields } from './feature.ts'
import { type Config, parseConfig, problemIn } from './parse.ts'
import type { Policy } from './schema/policy.ts'
import { countsBytes } from './schema/reads.ts'

/** A field of a policy with the values that need something, and what to write instead. Defaults to nothing. */
type Need = [path: string, isNeeded: (policy: Policy) => boolean, instead?: string]

/**
 * The fields that need something which a host lacks, and why it does; or what finds them in the options. A host that has all of it lacks
 * nothing.
 */
export type Lack =
  | readonly [needs: readonly Need[], reason: string]
  | ((options: object) => ConfigProblem[])

/** The status and the header fields of the response. */
export const needResponse: readonly Need[] = [
  ['countOnly', ({ countOnly }) => countOnly !== undefined],
  ['cost.response', ({ cost }) => cost.response !== undefined],
  [
    'algorithm',
    ({ algorithm }) => algorithm === 'concurrency',
    'an algorithm that counts requests in a window',
  ],
]

/** The body of the response. */
export const needBody: readonly Need[] = [
  ['cost.response', countsBytes],
  ['cost.usage', ({ cost }) => cost.usage !== undefined],
]

/**
 * Parses a configuration as its host does when it starts.
 * @param byDefault the features that the host has besides those of `use`
 * @throws {ConfigError} if it is invalid, or if a field needs another feature or another host
 */
export const parseFor = (
  options: object,
  byDefault: readonly FeatureFields[],
  lacks: readonly Lack[],
): Config => parseConfig(options, byDefault, (config) => checkHost(config, options, lacks))

/**
 * Checks the policies of a configuration with what its host lacks.
 * @param options the object that the configuration was parsed from
 * @throws {ConfigError} for each field that needs it
 */
function checkHost({ policies }: Config, options: object, lacks: readonly Lack[]): void {
  const problems = lacks.flatMap((lack) => {
    if (typeof lack === 'function') return lack(options)
    const [needs, reason] = lack
    return policies.flatMap((policy, index) =>
      needs.flatMap(([path, isNeeded, instead = 'nothing']): ConfigProblem[] => {
        const at = ['policies', index, ...path.split('.')]
        return isNeeded(policy) ? [problemIn(options, at, `${instead}, because ${reason}`)] : []
      }),
    )
  })
  if (problems.length > 0) throw new ConfigError(problems)
}
