import { calendar, type Period } from '../base/calendar.ts'
import type { Denied, Lacking } from '../base/decision.ts'
import type { Log } from '../base/log.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import type { RequestView } from '../request/view.ts'
import { compileCondition, type Mismatch } from './condition.ts'
import { compileCost } from './cost.ts'
import { compileKey, type KeyReaders, keyReaders, labelOf } from './key.ts'
import { compilePlan } from './plan.ts'
import { canonical, type Part } from './subject.ts'

/** What a policy makes of a request that it meets. */
export interface Match {
  policy: Policy
  /** Whose quota, before it is named for the store. */
  partitionKey: Part[]
  /** Units. */
  cost: number
  /** The calendar's, where the window is one: this period and the next. */
  period?: Period
}

/** Why a policy does not meet a request: a field of its match, an entry of the list `allow`, or a part of its key without a value. */
export type Unmet =
  | { policy: Policy; unmet: 'match'; field: NonNullable<Mismatch> }
  | { policy: Policy; unmet: 'allow'; entry: string }
  | ({ policy: Policy; unmet: 'key' } & Lacking)

/** What a configuration makes of a request. */
export interface Matched {
  denied?: Denied
  /**
   * For each policy, in their order. A policy has several matches in a row where the readings of a path name several quotas: each
   * of them is charged. Of a request on the list `deny`: none.
   */
  policies: (Match | Unmet)[]
  /** Whom the shield counts; absent where there is none, or the request lacks a part of its key. */
  shield?: Part[]
}

/** Whether a policy meets the request after all. */
export const isMatch = (one: Match | Unmet): one is Match => !('unmet' in one)

export type Matcher = (view: RequestView) => Promise<Matched>

type MatchConfig = Pick<
  Config,
  | 'policies'
  | 'allow'
  | 'deny'
  | 'tables'
  | 'caseSensitivePaths'
  | 'jwt'
  | 'apiKeys'
  | 'deadlineMs'
  | 'shield'
>

/** Compiles a configuration once, so that a request only runs comparisons. */
export function compileMatcher(
  config: MatchConfig,
  log: Log,
  readers: KeyReaders = keyReaders(config, log),
): Matcher {
  const deny = config.deny.map((entry) => ({
    ...entry,
    mismatch: compileCondition(entry.condition, config),
  }))
  const allow = config.allow.map((entry) => ({
    ...entry,
    mismatch: compileCondition(entry.condition, config),
  }))
  const policies = config.policies.map((policy) => compilePolicy(policy, config, readers))
  const shieldKey = config.shield && compileKey(config.shield.key, [], config, readers)

  return async (view) => {
    // Where origins differ on what a path says, the strictest reading counts: no spelling is a way round, or in.
    const readings =
      view.paths.length === 1 ? [view] : view.paths.map((path) => ({ ...view, path }))
    const denied = deny.find(({ mismatch }) => readings.some((one) => !mismatch(one)))
    if (denied) return { denied: { by: denied.name }, policies: [] }
    const allowed = allow.filter(({ mismatch }) => readings.every((one) => !mismatch(one)))
    const each = await Promise.all(
      policies.map(({ policy, describe }): Unmet | Promise<Met | Unmet> => {
        const entry = allowed.find(({ policies: names = [policy.name] }) =>
          names.includes(policy.name),
        )
        return entry ? { policy, unmet: 'allow', entry: entry.name } : describe(readings)
      }),
    )
    const described = readings.length === 1 ? (each as (Match | Unmet)[]) : each.flat()
    const refusing = described.find(
      (one): one is Refusing =>
        'unmet' in one &&
        one.unmet === 'key' &&
        one.policy.onMissingKey === 'refuse' &&
        one.policy.mode === 'enforce',
    )
    const shield = shieldKey && described.some(isMatch) ? await shieldKey(view) : undefined
    return {
      ...(refusing && { denied: deniedBy(refusing) }),
      policies: described,
      ...(shield?.every(([, value]) => value !== undefined) && { shield }),
    }
  }
}

type Refusing = Extract<Unmet, { unmet: 'key' }>

const deniedBy = ({ policy, unmet: _, ...lacking }: Refusing): Denied => ({
  by: policy.name,
  ...lacking,
})

/** A policy that meets a request: one match, or one for each quota that the readings of its path name. */
type Met = Match | Match[]

/** Who is 7 to one function is another than who is 7 to the next. */
const otherLabelOf = (part: KeyPart) => (part.source === 'function' ? 'other' : labelOf(part))

function compilePolicy(policy: Policy, config: MatchConfig, readers: KeyReaders) {
  const mismatch = compileCondition(policy.match, config)
  const cost = compileCost(policy.cost, config)
  const compiled = (key: Policy['key'], label = labelOf) =>
    compileKey(key, policy.match.path ?? [], config, readers, label)
  const key = compiled(policy.key)
  const { onMissingKey } = policy
  const otherKey =
    typeof onMissingKey === 'object' ? compiled(onMissingKey.key, otherLabelOf) : undefined
  const planned = compilePlan(policy, config, readers)
  const periodOf = policy.calendar && calendar(policy.calendar.unit, policy.calendar.timeZone)

  // What is not met is known at once: most policies do not meet most requests.
  const describe = (readings: RequestView[]): Unmet | Promise<Met | Unmet> => {
    const met = readings.filter((one) => !mismatch(one))
    if (met.length === 0) return { policy, unmet: 'match', field: mismatch(readings[0]!)! }
    return met.length === 1 ? meet(met[0]!) : meetEach(met)
  }

  const meet = async (view: RequestView): Promise<Match | Unmet> => {
    let partitionKey = await key(view)
    if (partitionKey.some(([, value]) => value === undefined)) {
      const unmet = lackingOf(partitionKey, onMissingKey)
      if (unmet) return { policy, unmet: 'key', ...unmet }
      if (otherKey) partitionKey = await otherKey(view)
    }
    const period = periodOf?.(Date.now())
    return {
      policy: await planned(view),
      partitionKey,
      cost: await cost(view),
      ...(period && { period }),
    }
  }

  // Any of the readings may be the origin's: each quota that one of them names is charged, at the highest cost, by the smallest plan.
  const meetEach = async (met: RequestView[]): Promise<Met | Unmet> => {
    const each = await Promise.all(met.map(meet))
    const unmet = each.find((one) => !isMatch(one))
    if (unmet && (onMissingKey === 'refuse' || !each.some(isMatch))) return unmet
    const quotas = new Map<string, Match>()
    for (const one of each.filter(isMatch)) {
      const name = canonical(one.partitionKey)
      const known = quotas.get(name)
      if (!known || one.policy.limit < known.policy.limit) quotas.set(name, one)
    }
    const highest = Math.max(...each.filter(isMatch).map((one) => one.cost))
    return [...quotas.values()].map((one) => ({ ...one, cost: highest }))
  }
  return { policy, describe }
}

/** The part for which a request without a value is not counted; `undefined` where the request is counted all the same. */
function lackingOf(
  partitionKey: Part[],
  onMissingKey: Policy['onMissingKey'],
): Lacking | undefined {
  const lacking = partitionKey.filter(([, value]) => value === undefined)
  const [label, , fault = 'missing'] = lacking[0]!
  // The origin may accept a credential that Sluice cannot use: 'skip' would let its client past the policy.
  const isSkipped = onMissingKey === 'skip' && lacking.every(([, , other]) => !other)
  return onMissingKey === 'refuse' || isSkipped ? { [fault]: label } : undefined
}
