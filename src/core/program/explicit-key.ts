import { sha256 } from '../base/digest.ts'
import type { ConfigProblem } from '../base/errors.ts'
import { network, networkRange, parseAddress } from '../base/ip.ts'
import type { Part } from '../base/part.ts'
import { show } from '../base/show.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { matchWith, twice } from '../decide/matched.ts'
import { normalizePath } from '../request/path.ts'
import { foldPart, labelOf } from './key.ts'
import { type Match, type Matched, withShare } from './match.ts'
import { ofPlan } from './plan.ts'
import { shareOfAny } from './reserve.ts'

/** One value of a policy's key. A text has at most 1,024 characters. */
export type KeyValue = string | number

/** The values of a policy's key, in the order of its parts. `null` is a missing part. A key of one part may be a single value. */
export type KeyValues = KeyValue | (KeyValue | null)[]

export const policyOf = (
  { config }: { config: Pick<Config, 'policies'> },
  name: string,
): Policy | undefined => config.policies.find((policy) => policy.name === name)

/** Makes the match of a policy by its name and its key. Its conditions, and the lists `allow` and `deny`, do not count. */
export async function matchByKey(
  config: Config,
  name: string,
  key: KeyValues,
  plan: string | undefined,
): Promise<Match | ConfigProblem> {
  const policy = policyOf({ config }, name)
  if (!policy) return { path: 'policy', expected: 'the name of a policy', got: show(name) }
  const found = await explicitKey(policy, key, plan, config)
  return 'expected' in found ? found : withShare(found, shareOfAny(policy))
}

/** Makes the matches of several policies, each by its name and its key. */
export async function matchedByKeys(
  config: Config,
  limits: readonly (readonly [name: string, key: KeyValues])[],
  plan: string | undefined,
): Promise<Matched | ConfigProblem> {
  const policies: Match[] = []
  for (const [name, key] of limits) {
    const found = await matchByKey(config, name, key, plan)
    if ('expected' in found) return found
    policies.push(found)
  }
  return twice(policies) ?? { policies }
}

/** Makes the match of one policy from explicit values of its key, in the order of the key. Normalizes the values like those of a request. */
export async function explicitKey(
  policy: Policy,
  key: KeyValues,
  plan: string | undefined,
  config: Pick<Config, 'caseSensitivePaths'>,
): Promise<Match | ConfigProblem> {
  const values = Array.isArray(key) ? key : [key]
  const labels = policy.key.map(labelOf)
  if (values.length !== labels.length) {
    return {
      path: 'key',
      expected: `a value for each of ${labels.join(', ')}`,
      got: `${values.length}`,
    }
  }
  const parts = await Promise.all(
    policy.key.map((part, index) => readPart(part, values[index], config)),
  )
  const wrong = parts.findIndex((part) => part instanceof Error)
  const at = (index: number) => (Array.isArray(key) ? `key[${index}]` : 'key')
  if (wrong >= 0) {
    return { path: at(wrong), expected: (parts[wrong] as Error).message, got: show(values[wrong]) }
  }
  const missing = parts.indexOf(undefined)
  if (missing >= 0 && policy.onMissingKey !== 'share') {
    return {
      path: at(missing),
      expected: `a value (the policy has no quota for requests without ${labels[missing]})`,
      got: show(values[missing]),
    }
  }
  return matchOf(
    policy,
    labels.map((label, index) => [label, parts[index] as string | undefined]),
    plan,
  )
}

/**
 * Makes the match of a policy with a partition key, or with a subject, whose key is not known, in the size of a plan. Returns a problem if the
 * policy does not have the plan.
 */
export function matchOf(
  policy: Policy,
  key: Part[] | string,
  plan?: string | undefined,
): Match | ConfigProblem {
  const planned = plan === undefined ? policy : ofPlan(policy, plan)
  if (!planned) {
    const names = Object.keys(policy.plan?.limits ?? {}).join(', ')
    return {
      path: 'plan',
      expected: names
        ? `one of ${names} (leave plan out for the limit of ${policy.limit})`
        : 'nothing (the policy has no plans)',
      got: show(plan),
    }
  }
  const match =
    typeof key === 'string' ? { ...matchWith(planned, []), subject: key } : matchWith(planned, key)
  // A key does not tell a value.
  return policy.distinct ? { ...match, distinct: [[labelOf(policy.distinct), undefined]] } : match
}

/** Normalizes one value. Returns `undefined` if it is missing, or an error whose message is the expected value. */
async function readPart(
  part: KeyPart,
  input: string | number | null | undefined,
  { caseSensitivePaths }: Pick<Config, 'caseSensitivePaths'>,
): Promise<string | undefined | Error> {
  if (input === null || input === undefined || input === '') return undefined
  const value = String(input)
  const cased = (path: string) => (caseSensitivePaths ? path : path.toLowerCase())
  switch (part.source) {
    case 'ip':
      return networkOf(value, part) ?? new Error('an IP address, or a network that shares a quota')
    case 'path':
      return value.startsWith('/')
        ? cased(normalizePath(new URL(`http://host${value}`).pathname))
        : new Error('a path that begins with /')
    case 'path-parameter': // Policies ignore the part of a segment after `;`, and never decode a `/` in it.
      return (
        foldPart(part, cased(value.replace(/;.*/s, '').replace(/[/\\]/g, encodeURIComponent)), {
          caseSensitivePaths,
        }) || undefined
      )
    case 'method':
    case 'country':
    case 'colo':
      return value.toUpperCase()
    case 'host':
      return hostOf(value) ?? new Error('a host')
    case 'api-key': // Quotas are counted by the digest of a key, so an operator may only know the digest.
      return /^sha256:([\da-f]{64})$/i.exec(value)?.[1]?.toLowerCase() ?? sha256(value)
    case 'global':
      return value === 'global' ? value : new Error('"global"')
    default:
      return foldPart(part, value, { caseSensitivePaths })
  }
}

/** Returns the counted network of an address or of a smaller network, in the form that keys use. */
function networkOf(text: string, { v4, v6 }: { v4: number; v6: number }): string | undefined {
  const one = parseAddress(text)
  const range = one ? [one] : networkRange(text)
  const [first, last = first] = range?.map((address) => network(address, v4, v6)) ?? []
  return first === last ? first : undefined
}

/** Returns a host in the form of URLs: lower case, ASCII, without port and final dot. */
function hostOf(text: string): string | undefined {
  const url = `http://${text}/`
  if (/[\s/?#@\\]/.test(text) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/\.$/, '')
}
