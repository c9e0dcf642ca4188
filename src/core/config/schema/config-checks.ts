/** Checks parts of a configuration against each other. */
import type { FeatureDeclaration } from '../feature.ts'
import { type ApiKeys, readsCredential } from './credentials.ts'
import { keysOfAll, MAX_KEYS } from './keys-in-redis.ts'
import type { Policy } from './policy.ts'
import type { AddProblem } from './shapes.ts'

/** Policies as far as their fields are valid. */
export type Unchecked = (Partial<Policy> | undefined)[]

/** Reports policies that together need more keys than one call takes. The script would refuse every request that all of them apply to. */
export function checkKeys(policies: Unchecked, problem: AddProblem) {
  const keys = keysOfAll(policies.map((policy) => policy ?? {}))
  if (keys <= MAX_KEYS) return
  const most = `at most ${MAX_KEYS} policies`
  const twice = ', counting each sliding-log or concurrency policy with penalty or overrides twice'
  problem(['policies'], policies.length > MAX_KEYS ? most : most + twice)
}

/** Reports features that are there twice. */
export function checkUse(use: readonly FeatureDeclaration[], problem: AddProblem) {
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
export function checkTags(policies: Pick<Policy, 'name' | 'tag'>[], problem: AddProblem) {
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
