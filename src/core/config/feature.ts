import type * as v from 'valibot'
import type { Policy } from './schema/policy.ts'
import type { Refusal } from './schema/refusal.ts'
import type { AddProblem } from './schema/shapes.ts'

export interface FeatureFields {
  /** The function that makes it, such as `leases`. A configuration has each name once. */
  readonly name: string
  /**
   * The fields that it adds to policies; owners.ts lists them too. A field that is left out is `undefined`, so these schemas have no defaults.
   * @internal
   * @param policy the other fields of the policy, as far as they are valid
   */
  readonly fields?: (policy: Partial<Policy>) => v.ObjectEntries
  /**
   * The fields that it adds to the configuration; owners.ts lists them too.
   * @internal
   * @param config the other fields, as far as they are valid
   */
  readonly settings?: (config: {
    namespace?: string | undefined
    policies?: readonly (Partial<Policy> | undefined)[]
  }) => v.ObjectEntries
  /** Reports settings that do not work together. @internal */
  check?(config: CheckedConfig, problem: AddProblem): void
}

/** A feature as the configuration knows it: an entry of `use`. `Feature` in core/feature.ts has its stages. */
export interface FeatureDeclaration extends FeatureFields {
  /** The variables with secrets that it reads. @internal */
  readonly variables?: readonly string[]
  /** True if it reads the bodies of requests. @internal */
  readonly readsBodies?: true
  /**
   * How a module of `npx sluice build` makes it: by an export of `sluice/built`, from its settings and an object of the other exports that
   * they need. Defaults to what the configuration has.
   * @internal
   */
  readonly built?: { maker: string; settings: object; parts: readonly string[] }
  /** @internal */
  compile(program: never): object
}

/** The parts of a configuration that features check, as far as they are valid. A setting with a problem may be `null`. */
export interface CheckedConfig {
  policies: readonly (Partial<Policy> | undefined)[]
  allow?: readonly unknown[] | undefined
  deny?: readonly unknown[] | undefined
  shield?: unknown
  headers?: readonly unknown[] | null
  tables?: Record<string, Record<string, string>> | null | undefined
  live?: unknown
  refusal?: Refusal | undefined
  clientAddress?: unknown
}

/** Checks each policy, as far as it is valid, with a function that reports a problem of it. */
export const checkPolicies = (
  { policies }: CheckedConfig,
  problem: AddProblem,
  check: (policy: Partial<Policy>, report: AddProblem) => void,
): void =>
  policies.forEach((policy, index) => {
    if (policy) check(policy, (path, ...rest) => problem(['policies', index, ...path], ...rest))
  })

/** True if a policy uses a feature: without use it has no stages, so that it costs nothing. A live document may have any policy. */
export const isUsed = (
  { live, policies }: { live?: unknown; policies: readonly Policy[] },
  uses: (policy: Policy) => unknown,
): boolean => live !== undefined || policies.some(uses)

export const readsBodies = ({ use }: { use: readonly FeatureDeclaration[] }): boolean =>
  use.some((feature) => feature.readsBodies)
