import { keyValues, type PartValue } from '../../src/api/explain.ts'
import type { Denied } from '../../src/base/decision.ts'
import { formatAddress } from '../../src/base/ip.ts'
import type { Config, Policy } from '../../src/config/parse.ts'
import type { KeyPart } from '../../src/config/schema/key.ts'
import { labelOf } from '../../src/match/key.ts'
import { compileMatcher, isMatch, type Match } from '../../src/match/match.ts'
import { canonical } from '../../src/match/subject.ts'
import { normalizePath } from '../../src/request/path.ts'
import { viewOf } from '../../src/request/view.ts'
import { type RequestTerms, toRequest } from './request.ts'
import { spanText } from './text.ts'
import { type NotMet, whyNot } from './why.ts'

/** What a configuration makes of one request. */
export interface Explanation {
  request: {
    method: string
    url: string
    path: string
    /** The path as policies see it; several where origins differ on what it says. */
    seenAs: string[]
    ip: string | null
    country: string | null
    asn: string | null
    colo: string | null
  }
  denied: Denied | null
  /**
   * In their order; none where an entry of `deny` names the request. A policy is listed once for each quota it charges: several where
   * the readings of the path name several.
   */
  policies: Explained[]
  /** What the Worker would have logged, and what it does about a path of its own. */
  notes: string[]
}

export type Explained = Met | NotMet

export interface Met {
  policy: string
  met: true
  mode: Policy['mode']
  algorithm: Policy['algorithm']
  limit: number
  /** Whether the limit is that of the request's plan; null where the policy has none. */
  ofPlan: boolean | null
  /** Of a calendar's period the present one's length. */
  windowMs: number
  calendar: Policy['calendar'] | null
  burst: number
  align: Policy['align']
  check: Policy['check']
  /** Whose quota. */
  key: PartValue[]
  /** The policy's own key, where a part of it has no value and the request is counted by another. */
  insteadOf: string[] | null
  /** What is made of a part that has no value. */
  onMissingKey: string
  cost: number
}

/** Describes a request as the Worker would, by the same code. */
export async function explain(parsed: Config, terms: RequestTerms): Promise<Explanation> {
  const config = withoutFunctions(parsed)
  const notes: string[] = []
  const describe = compileMatcher(config, (_event, _code, message) => void notes.push(message))
  const runtime = { env: process.env, context: undefined, waitUntil: () => {} }
  const seen = viewOf(toRequest(terms), runtime, config)
  const { denied, policies, shield } = await describe(seen)
  if (/^\/_sluice(\/|$)/.test(normalizePath(new URL(seen.request.url).pathname))) {
    notes.push('the Worker answers paths under /_sluice/ itself, before any policy')
  }
  const charged = policies.some(
    (one) => isMatch(one) && one.policy.mode === 'enforce' && one.cost > 0,
  )
  if (shield && charged) {
    const { limit, periodMs } = config.shield!
    const whom = shield.map(([part, value]) => (part === 'global' ? part : `${part} = ${value}`))
    notes.push(
      `before Redis the shield counts it, by ${whom.join(', ')}: ${limit} in ${spanText(periodMs)}`,
    )
  }
  const keys = new Set(policies.filter(isMatch).map((one) => canonical(one.partitionKey)))
  const places = Math.min(keys.size, config.shards?.length ?? 1)
  if (places > 1) {
    notes.push(
      `its ${keys.size} keys may be in ${places} of the ${config.shards!.length} databases: a call to each`,
    )
  }
  if (config.namespace && keys.size > 0) {
    notes.push(
      `its counters are in the namespace ${config.namespace}: in Redis sluice:1:${config.namespace}:{…}`,
    )
  }
  return {
    request: {
      method: seen.method,
      url: seen.request.url,
      path: terms.path,
      seenAs: seen.paths,
      ip: seen.address ? formatAddress(seen.address) : null,
      country: seen.country ?? null,
      asn: seen.asn ?? null,
      colo: seen.colo ?? null,
    },
    denied: denied ?? null,
    policies: policies.map((one) => (isMatch(one) ? met(one, config) : whyNot(one, seen, config))),
    notes,
  }
}

function met({ policy, partitionKey, cost, period }: Match, { policies }: Config): Met {
  const { name, mode, algorithm, limit, windowMs, burst, align, check, onMissingKey } = policy
  const own = policy.key.map(labelOf)
  const isOwn = own.join() === partitionKey.map(([part]) => part).join()
  return {
    policy: name,
    met: true,
    mode,
    algorithm,
    limit,
    ofPlan: policy.plan ? !policies.includes(policy) : null,
    windowMs: period ? period[1] - period[0] : windowMs,
    calendar: policy.calendar ?? null,
    burst,
    align,
    check,
    key: keyValues(partitionKey),
    insteadOf: isOwn ? null : own,
    onMissingKey: typeof onMissingKey === 'object' ? 'share' : onMissingKey,
    cost,
  }
}

/** What a key function would find, only the app knows that it is part of: none is called. */
export const BY_FUNCTION = '(what the function returns)'

function withoutFunctions(config: Config): Config {
  const told = (part: KeyPart): KeyPart =>
    part.source === 'function' ? { ...part, read: () => BY_FUNCTION } : part
  return {
    ...config,
    shield: config.shield && { ...config.shield, key: config.shield.key.map(told) },
    policies: config.policies.map((policy) => ({
      ...policy,
      plan: policy.plan && { ...policy.plan, key: told(policy.plan.key) },
      key: policy.key.map(told),
      onMissingKey:
        typeof policy.onMissingKey === 'object'
          ? { key: policy.onMissingKey.key.map(told) }
          : policy.onMissingKey,
    })),
  }
}
