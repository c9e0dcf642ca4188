/** Checks parts of a configuration against each other. */
import type { FeatureDeclaration } from '../feature.ts'
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

/** Reports features that are there twice, or exclude each other. */
export function checkUse(use: readonly FeatureDeclaration[], problem: AddProblem) {
  const names = use.map(({ name }) => name)
  use.forEach(({ name, excludes = '' }, index) => {
    if (names.indexOf(name) < index) problem(['use', index], `${name}() once`)
    if (names.includes(excludes)) problem(['use', index], `either ${name}() or ${excludes}()`)
  })
}

const DIGESTS = 'the SHA-256 of each API key in hex, as printed by: printf %s "$KEY" | sha256sum'

interface References {
  tables?: Record<string, Record<string, string>>
  allow?: { policies: string[] | undefined }[]
}

/** Reports references from one part of a configuration to another that is missing. */
export function checkReferences(
  policies: Unchecked,
  names: (string | undefined)[],
  { tables, allow }: References,
  problem: AddProblem,
) {
  policies.forEach((policy, index) => {
    const plan = policy?.plan
    const table = plan?.table
    if (typeof table !== 'string') return
    if (!Object.hasOwn(Object(tables), table)) {
      problem(['policies', index, 'plan', 'table'], 'the name of a table in tables')
    } else if (plan?.key?.source === 'api-key') {
      const entries = Object.keys(Object(tables?.[table]))
      const other = entries.findIndex((name) => !/^(sha256:)?[\da-f]{64}$/i.test(name))
      if (other >= 0) problem(['tables', table], `${DIGESTS}; entry ${other + 1} is not a digest`)
    }
  })
  if (!Array.isArray(allow)) return
  allow.forEach((entry, index) => {
    if (!Array.isArray(entry?.policies)) return
    entry.policies.forEach((name, place) => {
      if (!names.includes(name)) {
        problem(['allow', index, 'policies', place], 'the name of a policy')
      }
    })
  })
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
