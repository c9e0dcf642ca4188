/** Checks parts of a configuration against each other. */
import type { CheckedConfig, FeatureDeclaration, FeatureFields } from '../feature.ts'
import { parseOwned } from '../owned.ts'
import type { ApiKeys } from './credentials.ts'
import { keysOfAll, MAX_KEYS } from './keys-in-redis.ts'
import type { Policy } from './policy.ts'
import { readsCredential } from './reads.ts'
import type { Settings } from './settings.ts'
import type { AddProblem } from './shapes.ts'

type Unchecked = CheckedConfig['policies']

/**
 * Parses the fields of features in place, and checks all that counts against each other: policies, their features and the store. Includes
 * policies with problems of their own, as far as their fields are valid.
 * @param all all fields, also those that are not valid
 * @param byDefault the features of the host; those of `use` replace them
 * @returns the configuration, if it has a list of policies
 */
export function checkCounting(
  valid: Partial<Settings & { policies: Pick<Policy, 'name' | 'tag'>[] }>,
  problem: AddProblem,
  all: Record<string, unknown>,
  byDefault: readonly FeatureFields[],
): CheckedConfig | undefined {
  const { use = [], store } = valid
  checkUse(use, problem)
  store?.own?.check(valid, problem)
  const others = byDefault.filter(({ name }) => !use.some((one) => one.name === name))
  const features = [...use, ...others]
  const owned = parseOwned(all, features, problem)
  if (!Array.isArray(all.policies)) return undefined
  const policies: Unchecked = all.policies
  const names = policies.map((policy) => policy?.name)
  names.forEach((name, index) => {
    if (name !== undefined && names.indexOf(name) < index) {
      problem(['policies', index, 'name'], 'a name that no other policy has')
    }
  })
  checkKeys(policies, problem)
  const checked: CheckedConfig = { ...valid, ...owned, policies }
  for (const one of features) one.check?.(checked, problem)
  if (valid.policies) checkTags(valid.policies, problem)
  return checked
}

/** Reports policies that together need more keys than one call takes. The script would refuse every request that all of them apply to. */
function checkKeys(policies: Unchecked, problem: AddProblem) {
  const keys = keysOfAll(policies.map((policy) => policy ?? {}))
  if (keys <= MAX_KEYS) return
  const most = `at most ${MAX_KEYS} policies`
  const twice = ', counting each sliding-log or concurrency policy with penalty or overrides twice'
  problem(['policies'], policies.length > MAX_KEYS ? most : most + twice)
}

/** Reports features that are there twice. */
function checkUse(use: readonly FeatureDeclaration[], problem: AddProblem) {
  const names = use.map(({ name }) => name)
  use.forEach(({ name }, index) => {
    if (names.indexOf(name) < index) problem(['use', index], `${name}() once`)
  })
}

/** Reports names in the `policies` of entries of `allow` that no policy has. */
export function checkAllow(names: (string | undefined)[], allow: unknown, problem: AddProblem) {
  if (!Array.isArray(allow)) return
  allow.forEach((entry, index) => {
    if (!Array.isArray(entry?.policies)) return
    entry.policies.forEach((name: string, place: number) => {
      if (!names.includes(name)) {
        problem(['allow', index, 'policies', place], 'the name of a policy')
      }
    })
  })
}

/** Reports a condition `apiKey` without a list of known keys: a client could invent a key. */
export function checkKnown(apiKeys: ApiKeys, conditions: unknown, problem: AddProblem) {
  if (apiKeys.known || !readsCredential(conditions, 'apiKey')) return
  problem(
    ['apiKeys', 'known'],
    'the name of a variable like "API_KEYS", because a condition reads apiKey: without a list of keys a client can invent one',
  )
}

/** Reports policies with equal tags: the script would mistake their states for each other. About one pair of names in four billion has equal tags. */
function checkTags(policies: Pick<Policy, 'name' | 'tag'>[], problem: AddProblem) {
  policies.forEach(({ name, tag }, index) => {
    const namesake = policies.find((other) => other.tag === tag)!.name
    if (namesake !== name) {
      problem(
        ['policies', index, 'name'],
        `a name whose hash differs from that of ${JSON.stringify(namesake)}`,
      )
    }
  })
}
