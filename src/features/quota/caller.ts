/** The policies of a caller, whatever it requests next. */
import type { Config, Policy } from '../../core/config/parse.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import type { KeyPart } from '../../core/config/schema/key.ts'

/** The fields of a condition that describe a request and not its sender. */
const OF_REQUESTS = ['method', 'path', 'query', 'body'] as const

const isOfRequests = ({ source }: KeyPart) =>
  source === 'path' || source === 'path-parameter' || source === 'method' || source === 'body'

/** True if the quota of a caller depends on what it requests, so that it has many quotas of this policy. */
export const dependsOnRequest = ({ key, onMissingKey, plan }: Policy): boolean =>
  [
    ...key,
    ...(typeof onMissingKey === 'object' ? onMissingKey.key : []),
    ...(plan ? [plan.key] : []),
  ].some(isOfRequests)

/** The condition without what describes a request: it matches each sender of which a request may match. */
function ofSender({ not, ...condition }: Condition): Condition {
  const own = Object.fromEntries(
    Object.entries(condition).filter(([name]) => !OF_REQUESTS.some((one) => one === name)),
  )
  // An exclusion of some requests of a sender does not exclude the sender.
  const others = not?.filter((one) => !mentionsRequests(one))
  return others?.length ? { ...own, not: others } : own
}

const mentionsRequests = ({ not = [], ...condition }: Condition): boolean =>
  OF_REQUESTS.some((name) => condition[name] !== undefined) || not.some(mentionsRequests)

/** The configuration that matches a sender with the enforced policies of which it has one quota. */
export function forSenders(config: Config): Config {
  const policies = config.policies.filter(
    (policy) => policy.mode === 'enforce' && !dependsOnRequest(policy),
  )
  return {
    ...config,
    // An exemption of some requests of a sender does not exempt the sender.
    allow: config.allow.filter(({ condition }) => !mentionsRequests(condition)),
    shield: undefined,
    policies: policies.map((policy) => ({
      ...policy,
      // Each request has another value, and this one none.
      distinct: policy.distinct && { source: 'global' as const },
      match: ofSender(policy.match),
      reserve: [],
      cost: { rules: [], otherwise: 1 } as unknown as Policy['cost'],
      usesBody: false,
    })),
  }
}
