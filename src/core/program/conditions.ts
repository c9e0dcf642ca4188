import { needed } from '../base/needed.ts'
import { Unusable } from '../base/part.ts'
import type { Soon } from '../base/when-known.ts'
import type { Config, Policy } from '../config/parse.ts'
import { CREDENTIALS, readsCredential } from '../config/schema/reads.ts'
import { isTrustedProxy } from '../request/trusted-token.ts'
import type { Cased, RequestView } from '../request/view.ts'
import { compileCondition, compileRules, reached } from './condition.ts'
import { readingsOf } from './paths.ts'
import type { KeyReaders } from './source.ts'
import { type MatchConfig, usesPath } from './tells-apart.ts'

export const compileConditions = (config: MatchConfig, readers: KeyReaders) => ({
  allow: compileRules(config.allow, config),
  deny: compileRules(config.deny, config),
  withCredentials: compileCredentials(config, readers),
  readingsOf: usesPath(config) ? readingsOf : undefined,
  ofPolicy: (policy: Policy) => ({
    mismatch: compileCondition(policy.match, config),
    costOf: compileCost(policy, config),
    shareOf: compileReserve(policy, config),
  }),
})

export type Conditions = ReturnType<typeof compileConditions>

/** Compiles the cost of a request, in units. `undefined` if it is always `cost.otherwise`. */
function compileCost({ cost, usesBody }: Pick<Policy, 'cost' | 'usesBody'>, options: Cased) {
  const { header, rules, otherwise } = cost
  if (header === undefined && rules.length === 0 && !usesBody) return undefined
  const compiled = compileRules(rules, options)
  const byRules = (view: RequestView) => {
    if (view.message) return view.message.cost(compiled, cost, view)
    if (compiled.length === 0) return otherwise
    const [rules, isDecided] = reached(compiled, view)
    return Math.max(...rules.map((rule) => rule.cost), ...(isDecided ? [] : [otherwise]))
  }
  if (header === undefined) return byRules
  return (view: RequestView): Soon<number> => {
    const value = view.request.headers.get(header)
    if (value === null || !/^\d{1,15}$/.test(value)) return byRules(view)
    return isTrustedProxy(view).then((isTrusted) => (isTrusted ? Number(value) : byRules(view)))
  }
}

/** Compiles the share of the quota that a request must leave free: the largest of the rules that may be the first to match, otherwise 0. */
function compileReserve({ reserve }: Policy, config: Cased) {
  if (reserve.length === 0) return undefined
  const rules = compileRules(reserve, config)
  return (view: RequestView) => Math.max(0, ...reached(rules, view)[0].map(({ share }) => share))
}

/** Returns a function that verifies the credentials that conditions read, and adds them to a view; `undefined` if they read none. */
export function compileCredentials(
  { policies, allow, deny }: Pick<Config, 'policies' | 'allow' | 'deny'>,
  { claims, apiKey }: Pick<KeyReaders, 'claims' | 'apiKey'>,
): ((view: RequestView) => Promise<RequestView>) | undefined {
  const [jwt, key] = CREDENTIALS.map((field) => readsCredential([policies, allow, deny], field))
  if (!jwt && !key) return undefined
  const readKey = key ? needed(apiKey, 'apiKeys') : undefined
  const has = (found: unknown) => (found instanceof Unusable ? undefined : found !== undefined)
  return async (view) => {
    const [token, known] = await Promise.all([jwt && claims(view), readKey?.(view)])
    return view.with({ jwt: has(token), apiKey: has(known) })
  }
}
