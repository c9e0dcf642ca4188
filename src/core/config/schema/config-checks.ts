import * as v from 'valibot'
import { isObject } from '../../base/json.ts'
import { keysOfAll, MAX_KEYS } from '../../base/units.ts'
import type { CheckedConfig, FeatureFields } from '../feature.ts'
import type { ApiKeys } from './credentials.ts'
import { readsCredential } from './reads.ts'
import type { Settings } from './settings.ts'
import type { AddProblem } from './shapes.ts'

type Unchecked = CheckedConfig['policies']

/**
 * Parses the fields of features in place, and checks all that counts against each other: policies, also those with problems of their own, their
 * features and the store.
 * @param all all fields, also those that are not valid
 * @param byDefault the features of the host; those of `use` replace them
 * @returns the configuration, if it has a list of policies
 */
export function checkCounting(
  valid: Partial<Settings>,
  problem: AddProblem,
  all: Record<string, unknown>,
  byDefault: readonly FeatureFields[],
): CheckedConfig | undefined {
  const { use = [], store } = valid
  for (const [name, index] of repeated(use)) problem(['use', index], `${name}() once`)
  store?.own?.check(valid, problem)
  const others = byDefault.filter(({ name }) => !use.some((one) => one.name === name))
  const features = [...use, ...others]
  const owned = parseOwned(all, features, problem)
  if (!Array.isArray(all.policies)) return undefined
  const policies: Unchecked = all.policies
  for (const [, index] of repeated(policies))
    problem(['policies', index, 'name'], 'a name that no other policy has')
  checkKeys(policies, problem)
  const checked: CheckedConfig = { ...valid, ...owned, policies }
  for (const one of features) one.check?.(checked, problem)
  checkTags(policies, problem)
  return checked
}

/** Reports policies that need more keys than one call takes: the script would refuse every request that all of them apply to. */
function checkKeys(policies: Unchecked, problem: AddProblem) {
  const keys = keysOfAll(policies)
  if (keys <= MAX_KEYS) return
  const most = `at most ${MAX_KEYS} policies`
  const twice =
    ', counting each sliding-log, concurrency or distinct policy with penalty or overrides twice'
  problem(['policies'], policies.length > MAX_KEYS ? most : most + twice)
}

/** The names that an earlier entry of the list has, with their places. */
function repeated(list: readonly ({ name?: string } | undefined)[]): [string, number][] {
  const names = list.map((one) => one?.name)
  return names.flatMap((name, index): [string, number][] =>
    name !== undefined && names.indexOf(name) < index ? [[name, index]] : [],
  )
}

/** Reports names in the `policies` of entries of `allow` that no policy has. */
export function checkAllow(names: (string | undefined)[], allow: unknown, problem: AddProblem) {
  if (!Array.isArray(allow)) return
  allow.forEach((entry, index) => {
    if (!Array.isArray(entry?.policies)) return
    entry.policies.forEach((name: string, place: number) => {
      if (!names.includes(name))
        problem(['allow', index, 'policies', place], 'the name of a policy')
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

/** Reports equal tags of counters or bans, whose states the script would confuse. About one pair of names in four billion has equal tags. */
function checkTags(policies: Unchecked, problem: AddProblem) {
  const first = new Map<string, Unchecked[number]>()
  const check = (tag: string | undefined, policy: Unchecked[number], index: number) => {
    if (tag === undefined) return
    const other = first.get(tag)
    if (!other) first.set(tag, policy)
    else if (other === policy || other.name !== policy?.name) {
      const expected = `a name whose hash differs from that of ${JSON.stringify(other.name)}`
      problem(['policies', index, 'name'], expected)
    }
  }
  policies.forEach((policy, index) => void check(policy?.tag, policy, index))
  policies.forEach((policy, index) => void check(policy?.penalty?.tag, policy, index))
}

type OwnedValues = Record<string, unknown>

/**
 * Parses the fields of these features in a configuration and in its policies, in place. A field with a problem is left out of a policy,
 * and is `null` in the configuration.
 * @returns the fields of the configuration
 */
function parseOwned(config: OwnedValues, features: readonly FeatureFields[], problem: AddProblem) {
  const found: OwnedValues = {}
  for (const { fields, settings } of features) {
    if (settings) Object.assign(found, parseFields(config, settings(config), [], problem, null))
    if (!fields || !Array.isArray(config.policies)) continue
    config.policies.forEach((policy: unknown, index) => {
      if (isObject(policy)) parseFields(policy, fields(policy), ['policies', index], problem)
    })
  }
  return found
}

function parseFields(
  input: OwnedValues,
  entries: v.ObjectEntries,
  at: (string | number)[],
  problem: AddProblem,
  faulty?: null,
): OwnedValues {
  const found: OwnedValues = {}
  for (const [name, schema] of Object.entries(entries)) {
    const { success, output, issues = [] } = v.safeParse(schema, input[name])
    found[name] = success ? output : faulty
    for (const { path = [], message } of issues) {
      const keys = path.map(({ key }) => key as string | number)
      problem([...at, name, ...keys], message, path.at(-1)?.origin === 'key')
    }
  }
  Object.assign(input, found)
  return found
}
