/** Parses limits to a configuration in normal form, with the parts of its schema that need no request. */
import * as v from 'valibot'
import { ConfigError, type ConfigProblem, show } from '../core/base/errors.ts'
import { isObject } from '../core/base/json.ts'
import type { FeatureFields } from '../core/config/feature.ts'
import type { ConfigOptions, PolicyOptions } from '../core/config/options.ts'
import { type OwnedFields, opaque, owners } from '../core/config/owners.ts'
import type { Config, Policy } from '../core/config/parse.ts'
import { checked } from '../core/config/schema/checked.ts'
import { checkCounting } from '../core/config/schema/config-checks.ts'
import { settingFields } from '../core/config/schema/settings.ts'
import { accept, name, object, oneOf, units, whole } from '../core/config/schema/shapes.ts'
import { checkCalendar, checkQuota, normalTerms, termFields } from '../core/config/schema/terms.ts'

const { limits: _, ...ownersOfTerms } = owners

const namedFields = () => ({
  name,
  limit: units,
  ...termFields(),
  cost: v.optional(whole(0), 1),
  accept,
  ...opaque<Omit<OwnedFields, 'limits'>>(v.optional(v.unknown()), ownersOfTerms),
})

/** The terms of a limit. The fields are those of a policy (docs/reference/policies.md). */
export interface LimitTerms
  extends Pick<
    PolicyOptions,
    | 'algorithm'
    | 'limit'
    | 'window'
    | 'timeZone'
    | 'burst'
    | 'align'
    | 'mode'
    | 'wait'
    | 'penalty'
    | 'lease'
    | 'overrides'
    | 'deadline'
    | 'onStoreError'
    | 'localShare'
    | 'accept'
  > {
  /** Units of a call without `cost`: a whole number. Defaults to 1. */
  cost?: number
}

const limit = v.pipe(
  object(namedFields, (input, problem) => {
    checkQuota(input, problem)
    checkCalendar(input, problem)
  }),
  v.transform((options) => {
    const { window, deadline, timeZone, cost, ...rest } = options
    return {
      ...rest,
      ...normalTerms(options, rest.name, rest.limit),
      ...WITHOUT_REQUEST,
      cost: { rules: [], otherwise: cost } as unknown as Policy['cost'],
    }
  }),
)

/** What only a request needs. */
const WITHOUT_REQUEST = {
  ...{ key: [{ source: 'global' }], onMissingKey: 'share', match: {}, reserve: [] },
  ...{ plan: undefined, limits: undefined, countOnly: undefined, distinct: undefined },
  ...{ refusal: undefined, usesBody: false },
} as unknown as Policy

const limitsFields = () => ({
  policies: v.array(limit),
  ...settingFields(),
  headers: v.pipe(
    v.optional(oneOf('draft-11', 'off'), 'draft-11'),
    v.transform((written): 'draft-11'[] => (written === 'off' ? [] : [written])),
  ),
})

/** Where and how limits are counted. The fields are those of a configuration. */
export interface LimitsOptions
  extends Pick<
    ConfigOptions,
    | 'store'
    | 'namespace'
    | 'clock'
    | 'deadline'
    | 'batching'
    | 'denialCache'
    | 'unconfigured'
    | 'use'
  > {
  /** The fields that `fields()` of a decision returns. Defaults to `'draft-11'`. */
  headers?: 'draft-11' | 'off'
  /** Variables and bindings, such as `env` of `cloudflare:workers`. Defaults to the variables of the process. A call may have its own. */
  env?: object
}

/** The default export of `sluice.config.ts` that `npx sluice build` makes limits of. */
export interface LimitsConfig<Name extends string = string> extends Omit<LimitsOptions, 'env'> {
  /** The terms by the names of the limits, as `limits` takes them. */
  limits: Record<Name, LimitTerms>
}

/**
 * @param features those of the limiter, which have the schemas of their fields
 * @param prefix what stands before the names of the limits in the paths of problems. Defaults to nothing
 * @throws {ConfigError} lists every problem
 */
export function parseLimits(
  terms: Record<string, LimitTerms>,
  settings: Omit<LimitsOptions, 'env'>,
  features: readonly FeatureFields[],
  prefix = '',
): Config {
  const { limits, policies: inner = limits } = Object(terms)
  if (!isObject(terms) || (inner && Object.values(inner).every(isObject))) {
    const expected = "the terms by name, such as { invites: { limit: 20, window: '1d' } }"
    throw new ConfigError([{ path: 'limits', expected, got: show(terms) }])
  }
  const names = Object.keys(terms)
  const policies = names.map((name) => ({ ...terms[name], name }))
  const schema = object(limitsFields, (valid, problem, all) => {
    checkCounting(valid, problem, all, features)
  })
  const { output, problems } = checked(schema, { ...settings, policies }, 'limits')
  if (problems) throw new ConfigError(problems.map((one) => atTerms(one, names, prefix)))
  const { deadline, ...rest } = output
  return {
    ...rest,
    policies: output.policies.map((policy) => ({
      ...policy,
      deadlineMs: policy.deadlineMs ?? deadline,
    })),
    deadlineMs: deadline,
    ...{ allow: [], deny: [], apiKeys: {}, accept: [], caseSensitivePaths: false },
  } as unknown as Config
}

/** A problem with its path in the terms. The list of fields has none for the name. */
function atTerms(problem: ConfigProblem, names: string[], prefix: string): ConfigProblem {
  const [, index, field = ''] = /^policies\[(\d+)\]\.(.*)/.exec(problem.path) ?? []
  // The list of policies is made of the terms.
  if (index === undefined)
    return { ...problem, expected: problem.expected.replace(' policies,', prefix && ' limits,') }
  const path = `${prefix}${names[Number(index)]}.${field}`
  const expected = problem.expected.replace('fields name,', 'fields')
  if (!Object.hasOwn(WITHOUT_REQUEST, field)) return { ...problem, path, expected }
  const hint = expected.replace(
    'one of the fields',
    'limits() decides without a request. Its terms are',
  )
  return { ...problem, path, expected: 'nothing', hint }
}
