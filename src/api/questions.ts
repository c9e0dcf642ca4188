import type { ConfigProblem } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'
import { type Schema, show } from '../config/schema/checked.ts'
import type { Rules } from '../limiter/rules.ts'
import type { Description } from '../match/match.ts'
import type { Idempotency } from '../store/store.ts'
import { bodyOf, type Call } from './call.ts'
import { type Around, describedRequest } from './described-request.ts'
import { explicitKey } from './explicit-key.ts'
import { idempotencyOf } from './idempotency.ts'
import { unprocessable } from './problems.ts'
import type { Ask, Refund } from './schema.ts'

export const policyOf = ({ config }: Rules, name: string): Policy | undefined =>
  config.policies.find((policy) => policy.name === name)

/** The policies that a caller asks about, by hand or by a request, at the price that the caller names; or what is wrong. */
async function describedBy(
  asked: Ask | Refund,
  rules: Rules,
  around: Around,
): Promise<Description | ConfigProblem> {
  const description =
    'request' in asked
      ? await describedRequest(asked.request, rules, around)
      : await byPolicy(asked, rules)
  const { cost } = asked
  if ('expected' in description || cost === undefined) return description
  const policies = description.policies.map((one) => ('unmet' in one ? one : { ...one, cost }))
  return { ...description, policies }
}

async function byPolicy(
  { policy: name, key, plan }: Extract<Ask | Refund, { policy: string }>,
  rules: Rules,
): Promise<Description | ConfigProblem> {
  const policy = policyOf(rules, name)
  if (!policy) return { path: 'policy', expected: 'the name of a policy', got: show(name) }
  const found = await explicitKey(policy, key, plan, rules.config)
  return 'expected' in found ? found : { policies: [found] }
}

/** One thing that is asked, and what the rules make of it. */
export interface Described<A> {
  asked: A
  description: Description
}

/** All that a call asks. */
export interface Asking<A> {
  /** Whether it is a list, and so the answer. */
  many: boolean
  described: Described<A>[]
  once: Idempotency | undefined
}

/** Reads what a call asks, one or a list; or what is wrong with it, each fault with its place. */
export async function readAsking<A extends Ask | Refund>(
  { request, caller, rules, around }: Call,
  schema: Schema<A | A[]>,
): Promise<Asking<A> | Response> {
  const body = await bodyOf(request, schema)
  if (body instanceof Response) return body
  const many = Array.isArray(body)
  const all = await Promise.all(
    (many ? body : [body]).map(async (asked, index) => {
      const description = await describedBy(asked, rules, around)
      const at = many ? `[${index}].` : ''
      return 'expected' in description
        ? { ...description, path: at + description.path }
        : { asked, description }
    }),
  )
  const problems = all.filter((one): one is ConfigProblem => 'expected' in one)
  if (problems.length > 0) return unprocessable(problems)
  const described = all as Described<A>[]
  const once = await idempotencyOf(request, caller, body, described)
  return once instanceof Response ? once : { many, described, once }
}
