/** The most requests of one client that a policy admits, and why it may bound none. */
import type { Config, Policy } from '../../core/config/parse.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import type { KeyPart } from '../../core/config/schema/key.ts'
import { covers } from '../covers.ts'
import { disjoint } from '../disjoint.ts'
import { holdsSecret } from '../trust.ts'
import type { Expectation } from './options.ts'
import { mostUnits } from './units.ts'

/** Why a policy bounds nothing for some or all requests. */
export type Gap =
  | { why: 'shadow' | 'slots' | 'values' }
  /** Units come back after the response, because of this field. */
  | { why: 'response'; field: 'countOnly' | 'cost.response' | 'cost.usage' }
  /** A field of its condition does not hold for every request. */
  | { why: 'match'; field: keyof Condition }
  /** An entry of `allow` exempts requests. */
  | { why: 'allow'; entry: string }
  /** Requests without this part are skipped, or each of its values has a counter. */
  | { why: 'skip' | 'key'; part: KeyPart }
  | { why: 'free' }

export type Bound = { policy: Policy } & (Bounded | { gap: Gap })

interface Bounded {
  gap?: undefined
  requests: number
  /** The policy with the largest size that a request may have. */
  size: Policy
  counters: number
  /** The least that a request costs. */
  cost: number
}

type ExpectedTraffic = Omit<Expectation, 'atMost'>

/** The most requests that may pass, and the policies that bound them together. `Infinity` if none do. */
export interface Most {
  requests: number
  policies: Policy[]
}

/** Most policies that bound the requests of one expectation together, and most steps of the search for them. */
const MOST_PARTS = 4
const MOST_STEPS = 1_000

/** The most requests of an expectation that may pass, by the policy that applies to all of them and admits the fewest. */
export function mostBySingle(terms: ExpectedTraffic, config: Config): Most {
  let most: Most = { requests: Number.POSITIVE_INFINITY, policies: [] }
  for (const policy of config.policies) {
    const bound = boundOf(policy, terms, config)
    if (!bound.gap && bound.requests < most.requests)
      most = { requests: bound.requests, policies: [policy] }
  }
  return most
}

/** The most requests of an expectation that may pass, by several policies of which each applies to a part of the requests. */
export function mostBySeveral(terms: ExpectedTraffic, config: Config): Most {
  let steps = 0
  const search = (request: Condition, parts: number): Most => {
    let most = mostBySingle({ ...terms, request }, config)
    if (parts === 1 || most.policies.length > 0) return most
    for (const policy of config.policies) {
      steps += 1
      if (steps > MOST_STEPS) break
      const part = boundOf(policy, { ...terms, request }, config, true)
      if (part.gap || disjoint(request, policy.match)) continue
      const others = { ...request, not: [...(request.not ?? []), policy.match] }
      const rest = search(others, parts - 1)
      const requests = part.requests + rest.requests
      if (requests < most.requests) most = { requests, policies: [policy, ...rest.policies] }
    }
    return most
  }
  return search(terms.request, MOST_PARTS)
}

/** @param inPart true for the bound of only those requests that match the policy. Defaults to false */
export function boundOf(
  policy: Policy,
  terms: ExpectedTraffic,
  config: Config,
  inPart = false,
): Bound {
  const { request } = terms
  const field = inPart ? undefined : uncovered(policy.match, request)
  if (field) return { policy, gap: { why: 'match', field } }
  const entry = config.allow.find(
    ({ policies, condition }) =>
      (policies ?? [policy.name]).includes(policy.name) &&
      !holdsSecret(condition) &&
      !disjoint(request, condition),
  )
  if (entry) return { policy, gap: { why: 'allow', entry: entry.name } }
  const { onMissingKey, key } = policy
  const missing = key.find((part) => !isAlwaysThere(part, request))
  if (missing && onMissingKey === 'skip') return { policy, gap: { why: 'skip', part: missing } }
  const keys = missing && typeof onMissingKey === 'object' ? [key, onMissingKey.key] : [key]
  return boundBy(policy, terms, keys, leastCost(policy, request))
}

/** The bound of a policy that counts a request by one of these keys, and at least this cost. */
export function boundBy(
  policy: Policy,
  terms: ExpectedTraffic,
  keys: KeyPart[][],
  cost: number,
): Bound {
  if (policy.mode === 'shadow') return { policy, gap: { why: 'shadow' } }
  const field = refunding(policy)
  if (field) return { policy, gap: { why: 'response', field } }
  if (policy.algorithm === 'concurrency') return { policy, gap: { why: 'slots' } }
  if (policy.distinct) return { policy, gap: { why: 'values' } }
  let counters = 0
  for (const key of keys) {
    const count = countersOf(key, policy, terms)
    if (typeof count !== 'number') return { policy, gap: { why: 'key', part: count } }
    counters += count
  }
  if (cost === 0) return { policy, gap: { why: 'free' } }
  const size = largest(policy, terms.request)
  const requests = counters * Math.floor(mostUnits(size, terms.inMs) / cost)
  return { policy, requests, size, counters, cost }
}

const refunding = ({ countOnly, cost }: Policy) =>
  countOnly ? 'countOnly' : cost.response ? 'cost.response' : cost.usage ? 'cost.usage' : undefined

/** The first field of a policy's condition that some of the requests do not match. */
function uncovered(match: Condition, request: Condition): keyof Condition | undefined {
  if (covers(match, request)) return undefined
  const fields = Object.entries(match).filter(([, value]) => value !== undefined)
  const own = fields.map(([name, value]): [keyof Condition, Condition] => {
    // An exclusion that no request meets excludes nothing.
    if (name === 'not') return [name, { not: match.not!.filter((one) => !disjoint(request, one)) }]
    return [name as keyof Condition, { [name]: value }]
  })
  return own.find(([, condition]) => !covers(condition, request))?.[0]
}

function largest(policy: Policy, request: Condition): Policy {
  const { plan, limit, burstIsLimit, claim, algorithm } = policy
  const names = plan && algorithm !== 'token-bucket' ? plansIn(plan, request) : undefined
  const sizes = Object.entries(plan?.limits ?? {})
    .filter(([name]) => names?.includes(name.toLowerCase()) ?? true)
    .map(([, size]) => size)
  const most = Math.max(limit, claim?.max ?? 0, ...sizes)
  return { ...policy, limit: most, burst: burstIsLimit ? most : policy.burst }
}

/** The plans that the requests of a condition name in a header or a parameter, in lower case. */
function plansIn({ key, table }: NonNullable<Policy['plan']>, request: Condition) {
  if (table !== undefined || (key.source !== 'header' && key.source !== 'query')) return undefined
  const values = request[key.source]?.find(({ name }) => name === key.name)?.values
  return values?.some((text) => text.includes('*')) ? undefined : values
}

function leastCost({ cost }: Policy, request: Condition): number {
  const reached: number[] = []
  for (const { condition, cost: price } of cost.rules) {
    if (disjoint(request, condition)) continue
    reached.push(price)
    if (covers(condition, request)) return Math.min(...reached)
  }
  return Math.min(...reached, ownCost(cost))
}

/** The least cost without a rule. A document may cost nothing, and a number in the body at least 1. */
export const ownCost = ({ graphql, body, otherwise }: Policy['cost']): number =>
  graphql ? 0 : body === undefined ? otherwise : Math.min(1, otherwise)

/** True for a value that `per` fixes: the same part, or a larger network around the address. */
const isFixedBy = (per: KeyPart[], part: KeyPart) =>
  per.some((one) =>
    one.source === 'ip' && part.source === 'ip'
      ? part.v4 <= one.v4 && part.v6 <= one.v6
      : JSON.stringify(one) === JSON.stringify(part),
  )

const NONE = /^\b$/ // matches no text

/** The fields of a condition that list values of which each request has one, with what matches a pattern for several. */
const OPEN = {
  method: NONE,
  host: /^\*/,
  path: /\/:|\/\*$/,
  country: /^XX$/, // an unknown country is XX for conditions, and missing for keys
  asn: NONE,
}

/** The most different values of a key part among the requests of a condition; `Infinity` without a list, or with a pattern. */
function valuesIn({ source }: KeyPart, condition: Condition): number {
  if (source === 'global') return 1
  const field = (source === 'path-parameter' ? 'path' : source) as keyof typeof OPEN
  const values = Object.hasOwn(OPEN, field) ? condition[field] : undefined
  return values && !values.some((value) => OPEN[field].test(String(value)))
    ? values.length
    : Number.POSITIVE_INFINITY
}

/** The first part of a key that may have any number of values, or the number of counters. */
function countersOf(
  key: KeyPart[],
  { match }: Pick<Policy, 'match'>,
  { request, per }: Pick<Expectation, 'request' | 'per'>,
): number | KeyPart {
  let count = 1
  for (const part of key) {
    if (isFixedBy(per, part)) continue
    const values = Math.min(valuesIn(part, request), valuesIn(part, match))
    if (values === Number.POSITIVE_INFINITY) return part
    count *= values
  }
  return count
}

/** True for a part that every request of the condition has. */
function isAlwaysThere(part: KeyPart, { country, asn }: Condition): boolean {
  if (part.source === 'country') return country !== undefined && !country.includes('XX')
  if (part.source === 'asn') return asn !== undefined
  return ['global', 'method', 'host', 'path'].includes(part.source)
}
