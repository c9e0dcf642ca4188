import { systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { needed } from '../base/needed.ts'
import { canonical, type Part } from '../base/part.ts'
import { floorUnits, keysOfAll, MAX_KEYS } from '../base/units.ts'
import { type Soon, whenAllKnown, whenKnown } from '../base/when-known.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import { type Match, type Matched, matchWith, type Unmet } from '../decide/matched.ts'
import type { RequestView } from '../request/view.ts'
import type { Conditions, compileConditions } from './conditions.ts'
import { compileKey, type KeyStages, keyReaders, labelOf } from './key.ts'
import type { CompileClaim, CompilePlan } from './plan.ts'
import type { KeyReaders, Sources } from './source.ts'
import { type MatchConfig, tellsApart } from './tells-apart.ts'

export type { Match, Matched, Unmet } from '../decide/matched.ts'

export interface Rules {
  config: Config
  match: Matcher
  /** Read the values of keys that are given without a request. */
  sources: Sources
}

/**
 * Matches a request against a configuration.
 * @param isRefused is asked before the body is read, with the policies that do not depend on it. If it returns true, these are the result: a
 * refused client cannot hold an isolate with a body that it withholds. Defaults to no such question
 */
export type Matcher = (
  view: RequestView,
  isRefused?: (matched: Matched) => boolean,
) => Soon<Matched>

export interface MatchStages extends KeyStages {
  compileConditions?: typeof compileConditions
  compilePlan?: CompilePlan
  compileClaim?: CompileClaim
  /**
   * Describes each message of a request, in views for each reading of its path, and combines the results.
   * @param describe returns how a policy applies to one message, which is in the views
   * @param freeKeys the keys in Redis that one call takes besides one quota of each policy
   */
  refine?: (
    views: RequestView[],
    describe: (views: RequestView[]) => Soon<Met | Unmet>,
    freeKeys: number,
  ) => Soon<Met | Unmet>
}

/** Compiles a configuration into a matcher. The clock selects the period of a calendar window, ms since the epoch. */
export function compileMatcher(
  config: MatchConfig,
  log: Log,
  stages: MatchStages = {},
  readers: KeyReaders = keyReaders(config, log, stages),
  clock: () => number = systemClock,
): Matcher {
  const conditions = tellsApart(config)
    ? needed(stages.compileConditions, 'conditions')(config, readers)
    : undefined
  const { allow = [], deny = [], readingsOf, withCredentials } = conditions ?? {}
  const { refine } = stages
  const freeKeys = refine ? MAX_KEYS - keysOfAll(config.policies) : 0
  const policies = config.policies.map((policy) =>
    compilePolicy(policy, config, stages, readers, clock, freeKeys, conditions),
  )
  const shieldKey = config.shield && compileKey(config.shield.key, [], config, readers)

  const finish = (view: RequestView, each: Soon<Met | Unmet>[]): Soon<Matched> =>
    whenKnown(whenAllKnown(each), (known) => {
      const matched = matchedBy(known)
      if (!shieldKey || matched.policies.length === 0) return matched
      return whenKnown(shieldKey(view), (shield) =>
        isComplete(shield) ? { ...matched, shield } : matched,
      )
    })

  const match: Matcher = (view, isRefused) => {
    // If a path has several readings, the strictest counts. A client cannot evade a policy, or enter by `allow`, with another spelling.
    const readings = readingsOf?.(view) ?? [view]
    for (const { mismatch, name } of deny)
      if (readings.some((one) => !mismatch(one))) return { denied: { by: name }, policies: [] }
    const allowed =
      allow.length > 0 ? allow.filter(({ isCertain }) => readings.every(isCertain)) : allow
    const begun: Begun[] = []
    for (const { policy, begin } of policies) {
      const { name } = policy
      const entry = allowed.find(({ policies = [name] }) => policies.includes(name))
      begun.push(entry ? { policy, unmet: 'allow', entry: entry.name } : begin(readings))
    }
    const unread = refine ? config.policies.filter((_, index) => isUnread(begun[index]!)) : []
    if (unread.length === 0) return finish(view, begun as Soon<Met | Unmet>[])
    const read = () => {
      const all = begun.map((one) => (isUnread(one) ? one() : one))
      return finish(view, all)
    }
    if (!isRefused) return read()
    const others = begun.filter((one): one is Soon<Met | Unmet> => !isUnread(one))
    return whenKnown(whenAllKnown(others), (known) => {
      const matched = { ...matchedBy(known), unread }
      return isRefused(matched) ? matched : read()
    })
  }
  if (!withCredentials) return match
  return async (view, isRefused) => match(await withCredentials(view), isRefused)
}

export const isMatch = (one: Match | Unmet): one is Match => !('unmet' in one)

const further = (match: Match): Match => ({ ...match, isFurther: true })

function matchedBy(each: (Met | Unmet)[]): Matched {
  const matched: Matched = { policies: [] }
  for (const one of each) {
    if (Array.isArray(one)) matched.policies.push(one[0]!, ...one.slice(1).map(further))
    else if (isMatch(one)) matched.policies.push(one)
    else {
      matched.unmet ??= []
      matched.unmet.push(one)
      if (one.unmet !== 'key' || matched.denied) continue
      const { policy, unmet: _, ...lacking } = one
      if (policy.onMissingKey === 'refuse' && policy.mode === 'enforce')
        matched.denied = { by: policy.name, ...lacking }
    }
  }
  return matched
}

function isComplete(partitionKey: Part[]): boolean {
  for (const part of partitionKey) if (part[1] === undefined) return false
  return true
}

/** One match, or one for each quota that the readings of the path and the messages of the body select. */
export type Met = Match | Match[]

/** How a policy applies, or a function that reads the body to find it out. */
type Begun = Soon<Met | Unmet> | (() => Soon<Met | Unmet>)

const isUnread = (one: Begun) => typeof one === 'function'

/** The same value of two key functions means different clients, so the fallback function has a different label. */
const otherLabelOf = (part: KeyPart) => (part.source === 'function' ? 'other' : labelOf(part))

function compilePolicy(
  policy: Policy,
  config: MatchConfig,
  { compileClaim, compilePlan, refine }: MatchStages,
  readers: KeyReaders,
  clock: () => number,
  freeKeys: number,
  conditions: Conditions | undefined,
) {
  const { mismatch, costOf, shareOf } = conditions?.ofPolicy(policy) ?? {}
  const { distinct } = policy
  const { otherwise } = policy.cost
  /** With `distinct`, the value is the last part. */
  const compiled = (key: Policy['key'], label = labelOf) =>
    compileKey(
      distinct ? [...key, distinct] : key,
      policy.match.path ?? [],
      config,
      readers,
      label,
      distinct,
    )
  const key = compiled(policy.key)
  const { onMissingKey } = policy
  const otherKey =
    typeof onMissingKey === 'object' ? compiled(onMissingKey.key, otherLabelOf) : undefined
  const planned = compilePlan?.(policy, config, readers)
  const sized = compileClaim?.(policy, readers, planned) ?? planned

  /** The size, the cost and the period of each request are the same, and its values are not read. */
  const isConstant = !(sized || costOf || policy.calendar || shareOf || distinct)

  // Synchronous for a policy that does not apply, because most policies do not apply to most requests.
  const describe = (readings: RequestView[]): Soon<Met | Unmet> => {
    const [first] = readings as [RequestView]
    if (readings.length === 1) {
      const field = mismatch?.(first)
      return field ? { policy, unmet: 'match', field } : meet(first)
    }
    const met = readings.filter((one) => !mismatch?.(one))
    if (met.length === 0) return { policy, unmet: 'match', field: mismatch!(first)! }
    return met.length === 1 ? meet(met[0]!) : meetEach(met)
  }

  const beginBody = (readings: RequestView[]): Begun => {
    const met = readings.filter((one) => !mismatch?.(one))
    return met.length === 0 ? describe(readings) : () => refine!(met, describe, freeKeys)
  }

  const meet = (view: RequestView, parts: Soon<Part[]> = key(view)): Soon<Match | Unmet> => {
    if (parts instanceof Promise) return parts.then((known) => meet(view, known))
    if (isComplete(parts))
      return isConstant
        ? { terms: policy, partitionKey: parts, cost: otherwise }
        : meetBy(parts, view)
    const unmet = lackingOf(parts, onMissingKey)
    if (unmet) return { policy, unmet: 'key', ...unmet }
    return whenKnown(otherKey ? otherKey(view) : parts, (other) => meetBy(other, view))
  }

  const meetQuota = (partitionKey: Part[], view: RequestView): Soon<Match> =>
    whenKnown(sized ? sized(view) : policy, (policy) =>
      whenKnown(costOf ? costOf(view) : otherwise, (cost) =>
        withShare(matchWith(policy, partitionKey, cost, clock), shareOf?.(view)),
      ),
    )

  const meetBy = distinct
    ? (parts: Part[], view: RequestView): Soon<Match> =>
        whenKnown(meetQuota(parts.slice(0, -1), view), (match) => ({
          ...match,
          distinct: parts.slice(-1),
        }))
    : meetQuota

  // The origin may use any of the readings. So each selected quota is charged, at the highest cost, with the smallest plan and the
  // largest reserve.
  const meetEach = async (met: RequestView[]): Promise<Met | Unmet> => {
    const each = await Promise.all(met.map((view) => meet(view)))
    const unmet = each.find((one) => !isMatch(one))
    if (unmet && (onMissingKey === 'refuse' || !each.some(isMatch))) return unmet
    const quotas = new Map<string, Match>()
    for (const one of each.filter(isMatch)) {
      const name = canonical(one.partitionKey)
      const known = quotas.get(name)
      if (!known || one.terms.limit < known.terms.limit) quotas.set(name, one)
      if (known?.distinct) quotas.set(name, withValues(quotas.get(name)!, [known, one]))
    }
    const highest = Math.max(...each.filter(isMatch).map((one) => one.cost))
    const share = shareOf && Math.max(...met.map(shareOf))
    return [...quotas.values()].map((one) =>
      withShare({ ...one, cost: one.distinct ? one.cost : highest }, share),
    )
  }
  return { policy, begin: policy.usesBody ? beginBody : describe }
}

export const withShare = (match: Match, share: number | undefined): Match =>
  share ? { ...match, share, floor: floorUnits(match.terms, share) } : match

/** The match with the values of several matches of its quota. Each value costs one unit; requests without the value have none in common. */
export function withValues(match: Match, same: Match[]): Match {
  const all = same.flatMap(({ distinct = [] }) => distinct)
  const distinct = [...new Map(all.map((part, index) => [part[1] ?? index, part])).values()]
  return { ...match, distinct, cost: distinct.length }
}

/** The missing part because of which the policy does not count the request; `undefined` if it counts the request. */
function lackingOf(partitionKey: Part[], onMissingKey: Policy['onMissingKey']) {
  const lacking = partitionKey.filter(([, value]) => value === undefined)
  const [label, , fault = 'missing'] = lacking[0]!
  // The origin may accept a credential that Sluice cannot use, so 'skip' must not exempt it from the policy.
  const isSkipped = onMissingKey === 'skip' && lacking.every(([, , other]) => !other)
  return onMissingKey === 'refuse' || isSkipped ? { [fault]: label } : undefined
}
