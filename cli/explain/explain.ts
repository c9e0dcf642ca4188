import { keyValues, type PartValue } from '../../src/api/explain.ts'
import type { Denied } from '../../src/core/base/decision.ts'
import { spanText } from '../../src/core/base/duration.ts'
import { formatAddress } from '../../src/core/base/ip.ts'
import { canonical } from '../../src/core/base/part.ts'
import type { Config, Policy } from '../../src/core/config/parse.ts'
import type { Weights } from '../../src/core/config/schema/cost.ts'
import type { KeyPart } from '../../src/core/config/schema/key.ts'
import { isPlain } from '../../src/core/connection/upstash/sets.ts'
import { limitsOf } from '../../src/core/decide/limit.ts'
import { featuresOf, stagesOf } from '../../src/core/feature.ts'
import { compileCredentials } from '../../src/core/program/conditions.ts'
import { keyReaders, labelOf } from '../../src/core/program/key.ts'
import { compileMatcher, type Match } from '../../src/core/program/match.ts'
import { addressReader } from '../../src/core/request/client-address.ts'
import { normalizePath, readings } from '../../src/core/request/path.ts'
import { RequestView } from '../../src/core/request/view.ts'
import { defaults } from '../../src/features/defaults.ts'
import { type RequestTerms, toRequest } from './request.ts'
import { type NotMet, whyNot } from './why.ts'

/** How a configuration treats one request. */
export interface Explanation {
  request: {
    method: string
    url: string
    path: string
    /** The readings of the path: how policies see it. Several if origins may read the path in different ways. */
    seenAs: string[]
    ip: string | null
    country: string | null
    asn: string | null
    colo: string | null
    ja4: string | null
    botScore: number | null
    /** The category of a verified bot; empty for another client. */
    verifiedBot: string | null
  }
  denied: Denied | null
  /**
   * The policies in the order of the configuration; none if an entry of `deny` matches. A policy is listed once for each quota that it
   * charges, which are several if the readings of the path differ in a key part.
   */
  policies: Explained[]
  /** The form of the script that decides the policies that apply (lua/README.md); null if none applies. */
  script: 'compiled' | 'general' | null
  /** What the Worker would log, and further remarks about this request. */
  notes: string[]
}

export type Explained = Met | NotMet

export interface Met {
  policy: string
  met: true
  mode: Policy['mode']
  algorithm: Policy['algorithm']
  limit: number
  /** True if the limit comes from the plan of the request; null if the policy has no plans. */
  ofPlan: boolean | null
  /** The claim that may set the limit, and if it does. Absent if the policy reads no claim. */
  ofClaim?: { claim: string; isSet: boolean }
  /** Present if operators may have set another limit for the key. */
  overrides?: true
  /** Length of the window in ms. For a calendar window, the length of the current period. */
  windowMs: number
  calendar: Policy['calendar'] | null
  burst: number
  align: Policy['align']
  /** The partition key. */
  key: PartValue[]
  /** The values that the policy counts. Present with `distinct`. */
  values?: PartValue[]
  /** The key of the policy, if a part of it has no value and another key is used (`onMissingKey`). */
  insteadOf: string[] | null
  /** What happens if a key part has no value. */
  onMissingKey: string
  cost: number
  /** Its own response to refused requests: the status and the kinds of body that are set, or a function; null for the default. */
  refusal: string | null
  /** The units that the request must leave free. Absent if it may use the whole quota. */
  floor?: number
  /** The paths of the cost in the body of the response with their units, and its bounds (`cost.usage`). */
  usage?: { paths: Weights; max: number; cut: boolean }
}

/** Explains how the Worker would treat a request. Uses the code of the Worker. */
export async function explain(parsed: Config, terms: RequestTerms): Promise<Explanation> {
  const config = withoutFunctions(parsed)
  const notes: string[] = []
  const log = (_event: string, _code: string, message: string) => void notes.push(message)
  const stages = stagesOf({ config, log }, featuresOf(config, defaults()))
  const readers = keyReaders(config, log, stages)
  const describe = compileMatcher(config, log, stages, readers)
  const runtime = { env: process.env, context: undefined, waitUntil: () => {} }
  const request = toRequest(terms)
  // The options name the address of the client, wherever `clientAddress` reads it.
  const view = new RequestView(request, runtime, config, addressReader('cloudflare'))
  const seen = (await compileCredentials(config, readers)?.(view)) ?? view
  const { denied, policies, unmet = [], shield } = await describe(seen)
  if (/^\/_sluice(\/|$)/.test(normalizePath(new URL(seen.request.url).pathname))) {
    notes.push('the Worker itself responds to paths under /_sluice/, before any policy applies')
  }
  if (config.policies.some(({ usesBody }) => usesBody)) {
    const problem = await stages.bodyProblem!(request)
    if (problem) notes.push(`the body cannot be read: ${problem}`)
  }
  const charged = policies.some((one) => one.terms.mode === 'enforce' && one.cost > 0)
  if (shield && charged) {
    const { limit, periodMs } = config.shield!
    const key = shield.map(([part, value]) => (part === 'global' ? part : `${part} = ${value}`))
    notes.push(
      `the shield counts the request before Redis does, by ${key.join(', ')}: ${limit} per ${spanText(periodMs)}`,
    )
  }
  const keys = new Set(policies.map((one) => canonical(one.partitionKey)))
  if (config.use.some(({ name }) => name === 'cluster') && keys.size > 1) {
    notes.push(
      `the ${keys.size} keys may be in ${keys.size} slots of the cluster, with one call of the script for each slot`,
    )
  }
  if (config.namespace && keys.size > 0) {
    notes.push(
      `the counters are in the namespace ${config.namespace}; their keys in Redis are sluice:1:${config.namespace}:{…}`,
    )
  }
  return {
    request: {
      method: seen.method,
      url: seen.request.url,
      path: terms.path,
      seenAs: seen.pathsBy(readings),
      ip: seen.address ? formatAddress(seen.address) : null,
      country: seen.country ?? null,
      asn: seen.asn ?? null,
      colo: seen.colo ?? null,
      ja4: seen.ja4 ?? null,
      botScore: seen.botScore ?? null,
      verifiedBot: seen.verifiedBot ?? null,
    },
    denied: denied ?? null,
    policies: config.policies.flatMap(({ name }) => [
      ...policies.filter(({ terms }) => terms.name === name).map((one) => met(one, config)),
      ...unmet.filter(({ policy }) => policy.name === name).map((one) => whyNot(one, seen, config)),
    ]),
    script: await scriptFor(policies),
    notes,
  }
}

/** A call with a lease, or with an enforced and a shadow policy, has several requests of one key, which need the general script. */
async function scriptFor(matches: Match[]): Promise<Explanation['script']> {
  if (matches.length === 0) return null
  const limits = await limitsOf(matches, undefined, { nameSubject: canonical })
  const isOne = matches.length === 1 || matches.every(({ terms }) => terms.mode === 'enforce')
  const hasLease = matches.some(({ terms }) => terms.lease)
  return isOne && !hasLease && isPlain({ mode: 'take', limits }) ? 'compiled' : 'general'
}

function met({ terms, partitionKey, distinct, cost, floor, period }: Match, config: Config): Met {
  const { policies } = config
  const { name, mode, algorithm, limit, windowMs, burst, align, onMissingKey } = terms
  const isSet = !policies.includes(terms) && terms.planName === undefined
  const own = terms.key.map(labelOf)
  const isOwn = own.join() === partitionKey.map(([part]) => part).join()
  return {
    policy: name,
    met: true,
    mode,
    algorithm,
    limit,
    ofPlan: terms.plan ? terms.planName !== undefined : null,
    ...(terms.claim && { ofClaim: { claim: terms.claim.claim, isSet } }),
    ...(terms.overrides && { overrides: true }),
    windowMs: period ? period[1] - period[0] : windowMs,
    calendar: terms.calendar ?? null,
    burst,
    align,
    key: keyValues(partitionKey),
    ...(distinct && { values: keyValues(distinct) }),
    insteadOf: isOwn ? null : own,
    onMissingKey: typeof onMissingKey === 'object' ? 'share' : onMissingKey,
    cost,
    refusal: refusalText(terms.refusal ?? config.refusal),
    ...(floor !== undefined && { floor }),
    ...(terms.cost.usage && {
      usage: { paths: terms.cost.usage, max: terms.cost.max!, cut: terms.cost.cut },
    }),
  }
}

function refusalText(refusal: Policy['refusal']): string | null {
  if (refusal === undefined) return null
  if (typeof refusal === 'function') return 'by a function'
  const { status, body, headers = {} } = refusal
  const kinds =
    typeof body === 'string'
      ? [body]
      : Object.entries(body ?? {}).flatMap(([kind, text]) => (text === undefined ? [] : [kind]))
  const parts = [...(status ? [`status ${status}`] : []), ...kinds, ...Object.keys(headers)]
  return parts.join(', ') || null
}

/** Stands in for the result of a key function. Functions are not called, since they need the context of the app. */
export const BY_FUNCTION = '(result of the function)'

/** The configuration with a constant in place of each function of a key, which needs a context. */
export function withoutFunctions(config: Config): Config {
  const withoutFunction = (part: KeyPart): KeyPart =>
    part.source === 'function' ? { ...part, read: () => BY_FUNCTION } : part
  return {
    ...config,
    shield: config.shield && { ...config.shield, key: config.shield.key.map(withoutFunction) },
    policies: config.policies.map((policy) => ({
      ...policy,
      plan: policy.plan && { ...policy.plan, key: withoutFunction(policy.plan.key) },
      key: policy.key.map(withoutFunction),
      onMissingKey:
        typeof policy.onMissingKey === 'object'
          ? { key: policy.onMissingKey.key.map(withoutFunction) }
          : policy.onMissingKey,
    })),
  }
}
