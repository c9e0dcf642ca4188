import * as v from 'valibot'
import type { Decision, LimitState } from '../../core/base/decision.ts'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import type { Config, Policy } from '../../core/config/parse.ts'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { policy as policySchema } from '../../core/config/schema/policy.ts'
import {
  duration,
  type Input,
  type Named,
  object,
  pattern,
  whole,
} from '../../core/config/schema/shapes.ts'
import { decideEach, knownRefusal } from '../../core/decide/decide.ts'
import { createLocalStore } from '../../core/fallback/local.ts'
import type { Feature, Limiter, PathHandler } from '../../core/feature.ts'
import { compileMatcher, type Matched, type Matcher } from '../../core/program/match.ts'
import { RequestView } from '../../core/request/view.ts'
import { preflight, withCors } from '../../core/respond/cors.ts'
import { jsonAnswer, problem, refusal, withDecisionFields } from '../../core/respond/response.ts'
import { dependsOnRequest, forSenders } from './caller.ts'

const fields = () => ({
  /** The path of the endpoint, under `/_sluice/`, which no origin has: `'/_sluice/quota'`. Defaults to that. */
  path: v.optional(
    pattern('a path like "/_sluice/quota"', /^\/_sluice\/(?!v1\/|health$|ready$)[\w-]+$/),
    '/_sluice/quota',
  ),
  /** Requests of one address for the endpoint in a window: a whole number, at least 1. Defaults to 60. */
  limit: v.optional(whole(1), 60),
  /** The window of this limit: a duration such as `'1m'`. Defaults to `'1m'`. */
  window: v.optional(duration, 60_000),
})

/** Options of `quota`. */
export interface QuotaOptions extends Input<ReturnType<typeof fields>>, Named {}

/** One quota of a caller. Waits are in ms. */
export interface CallerQuota
  extends Pick<
    LimitState,
    'policy' | 'limit' | 'unit' | 'windowMs' | 'remaining' | 'nextAfterMs' | 'resetAfterMs'
  > {
  /** The rest of a ban. Absent if there is none. */
  bannedForMs?: number
}

/** The answer of `GET /_sluice/quota`. */
export interface CallerQuotas {
  quotas: CallerQuota[]
  /** The policies of which a caller has many quotas, because their key has a part of the path or the body, or the method. */
  perRequest: string[]
}

/**
 * Answers `GET /_sluice/quota` with what is left of the quotas of this very caller: of each enforced policy, by the same keys and credentials
 * as any other request. It charges none of them, and is itself limited by address.
 * @throws {ConfigError} immediately, if the options are invalid
 * @example
 * rateLimiter({ policies: [{ name: 'per-key', limit: 1000, window: '1d', key: 'api-key' }], use: [quota()] })
 */
export function quota(options: QuotaOptions = {}): Feature {
  const { path: endpoint, ...terms } = parsedOptions(object(fields), options, 'quota')
  /** The limit on the endpoint itself. Its deadline is that of the configuration. */
  const limit = v.parse(policySchema, { name: 'sluice-quota', ...terms })
  /** By configuration: a live document replaces it. */
  const matchers = new WeakMap<Config, { itself: Matcher; caller: Matcher }>()

  function matchersOf(config: Config, { log, stages: { refine: _, ...stages } }: Limiter) {
    const compiled = (config: Config) => compileMatcher(config, log, stages)
    const own = { ...limit, deadlineMs: config.deadlineMs }
    const found = matchers.get(config) ?? {
      itself: compiled({ ...config, policies: [own], allow: [], deny: [], shield: undefined }),
      caller: compiled(forSenders(config)),
    }
    matchers.set(config, found)
    return found
  }

  async function answer(request: Request, runtime: RuntimeContext, limiter: Limiter) {
    const { config, readAddress, rulesOf, partsOf } = limiter
    const { method, headers } = request
    // Pages of another origin may send their credentials.
    if (method === 'OPTIONS' && config.cors)
      return preflight('GET, HEAD', headers.get('access-control-request-headers') ?? '')
    if (method !== 'GET' && method !== 'HEAD')
      return problem(405, { title: 'Method Not Allowed' }, { Allow: 'GET, HEAD' })
    const view = new RequestView(request, runtime, config, readAddress)
    const rules = rulesOf(view).config
    const parts = partsOf(runtime.env)
    const { itself, caller } = matchersOf(rules, limiter)
    const own = await itself(view)
    const known = knownRefusal(own, parts.denialCache)
    if (known) return refused(known.decision, config)
    const matched = withoutMissing(await caller(view))
    const { waitUntil } = runtime
    const questions = [{ matched: own }, { matched, mode: 'peek' as const }]
    const outcomes = await decideEach(questions, parts, { waitUntil })
    const [first, decision] = outcomes.map((one) => one.decision) as [Decision, Decision]
    if (!first.allowed) return refused(first, config)
    if (decision.denied) return refused(decision, config)
    if (decision.fallback) return refused({ ...decision, allowed: false, fallback: 'deny' }, config)
    const isPerRequest = (policy: Policy) => policy.mode === 'enforce' && dependsOnRequest(policy)
    const body: CallerQuotas = {
      quotas: decision.limits.map(quotaOf),
      perRequest: rules.policies.filter(isPerRequest).map(({ name }) => name),
    }
    return jsonAnswer(body)
  }

  const handler: PathHandler = async (path, request, runtime, limiter) => {
    if (path !== endpoint) return undefined
    const response = await answer(request, runtime, limiter)
    return withCors(response, limiter.config, request.headers.get('origin'))
  }

  return {
    name: 'quota',
    check({ policies }, problem) {
      const index = policies.findIndex((policy) => policy?.name === limit.name)
      if (index < 0) return
      const expected = `another name than ${JSON.stringify(limit.name)}, which is that of the limit on ${endpoint}`
      problem(['policies', index, 'name'], expected)
    },
    compile: () => ({ handlers: [handler], createLocal: createLocalStore }),
  }
}

function quotaOf(state: LimitState): CallerQuota {
  const { policy, limit, unit, windowMs, remaining, nextAfterMs, resetAfterMs, bannedForMs } = state
  return {
    ...{ policy, limit },
    ...(unit && { unit }),
    ...{ windowMs, remaining, nextAfterMs, resetAfterMs },
    ...(bannedForMs && { bannedForMs }),
  }
}

/** A caller without a credential has no quota of a policy that needs it. One whose credential is refused everywhere else is refused here. */
function withoutMissing(matched: Matched): Matched {
  const { denied, ...others } = matched
  if (!denied?.missing) return matched
  for (const one of others.unmet ?? []) {
    if (one.unmet !== 'key' || one.missing) continue
    const { policy, unmet: _, ...lacking } = one
    if (policy.onMissingKey === 'refuse')
      return { ...others, denied: { by: policy.name, ...lacking } }
  }
  return others
}

const refused = (decision: Decision, config: Config) =>
  withDecisionFields(refusal(decision), decision, config)
