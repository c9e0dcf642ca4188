/** What is left of a client's quotas, for the client. */
import type { Decision, LimitState } from '../../core/base/decision.ts'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import type { Config, Policy } from '../../core/config/parse.ts'
import { decideEach, knownRefusal } from '../../core/decide/decide.ts'
import type { Outcome } from '../../core/decide/question.ts'
import { createLocalStore } from '../../core/fallback/local.ts'
import type { Feature, Limiter, PathHandler } from '../../core/feature.ts'
import { compileMatcher, type Matched, type Matcher } from '../../core/program/match.ts'
import { RequestView } from '../../core/request/view.ts'
import { preflight, withCors } from '../../core/respond/cors.ts'
import { jsonAnswer, problem, refusal, withDecisionFields } from '../../core/respond/response.ts'
import { dependsOnRequest, forSenders } from './caller.ts'
import { parseOptions, type QuotaOptions } from './options.ts'

export type { QuotaOptions } from './options.ts'

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
  const { path: endpoint, limit } = parseOptions(options)
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

  async function answer(
    request: Request,
    runtime: RuntimeContext,
    limiter: Limiter,
  ): Promise<Response> {
    const { config, readAddress, rulesOf, partsOf } = limiter
    const { method, headers } = request
    // Pages of another origin may send their credentials.
    if (method === 'OPTIONS' && config.cors)
      return preflight('GET, HEAD', headers.get('access-control-request-headers') ?? '')
    if (method !== 'GET' && method !== 'HEAD') {
      return problem(405, { title: 'Method Not Allowed' }, { Allow: 'GET, HEAD' })
    }
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
    const [first, second] = (await decideEach(questions, parts, { waitUntil })) as [
      Outcome,
      Outcome,
    ]
    if (!first.decision.allowed) return refused(first.decision, config)
    const { decision } = second
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
    policy,
    limit,
    ...(unit && { unit }),
    windowMs,
    remaining,
    nextAfterMs,
    resetAfterMs,
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
