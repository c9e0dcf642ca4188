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

/** A policy that applies to a request. */
export interface Match {
  policy: Policy
  /** The values of the key. The subject in the store is made of them. */
  partitionKey: Part[]
  /** Cost in units. */
  cost: number
  /** The current and the next period of a calendar window. */
  period?: Period
}

/** Why a policy does not apply to a request: a field of its match, an entry of `allow`, or a key part without a value. */
export type Unmet =
  | { policy: Policy; unmet: 'match'; field: NonNullable<Mismatch> }
  | { policy: Policy; unmet: 'allow'; entry: string }
  | ({ policy: Policy; unmet: 'key' } & Lacking)

/** The result of matching a request against a configuration. */
export interface Matched {
  denied?: Denied
  /**
   * The result of each policy, in order. A policy has several consecutive matches if the readings of a path select several quotas; each
   * of them is charged. Empty if an entry of `deny` matches.
   */
  policies: (Match | Unmet)[]
  /** The partition key of the shield. Absent without a shield, or if a key part has no value. */
  shield?: Part[]
}

/** Reports whether the policy applies to the request. */
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

/** Compiles a configuration into a function that matches requests against it. */
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
    // If a path has several readings, the strictest counts. A client cannot evade a policy, or enter by `allow`, with another spelling.
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

/** One match, or one for each quota that the readings of the path select. */
type Met = Match | Match[]

/** The same value of two key functions means different clients, so the fallback function has a different label. */
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

  // Synchronous for a policy that does not apply, because most policies do not apply to most requests.
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

  // The origin may use any of the readings. So each selected quota is charged, at the highest cost and with the smallest plan.
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

/** The missing part because of which the policy does not count the request; `undefined` if it counts the request. */
function lackingOf(
  partitionKey: Part[],
  onMissingKey: Policy['onMissingKey'],
): Lacking | undefined {
  const lacking = partitionKey.filter(([, value]) => value === undefined)
  const [label, , fault = 'missing'] = lacking[0]!
  // The origin may accept a credential that Sluice cannot use, so 'skip' must not exempt it from the policy.
  const isSkipped = onMissingKey === 'skip' && lacking.every(([, , other]) => !other)
  return onMissingKey === 'refuse' || isSkipped ? { [fault]: label } : undefined
}
