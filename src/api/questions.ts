import type { ConfigProblem } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'
import { type Schema, show } from '../config/schema/checked.ts'
import type { Rules } from '../limiter/create.ts'
import type { Idempotency } from '../limiter/question.ts'
import type { Matched } from '../match/match.ts'
import { bodyOf, type Call } from './call.ts'
import { type Around, describedRequest } from './described-request.ts'
import { explicitKey } from './explicit-key.ts'
import { idempotencyOf } from './idempotency.ts'
import { unprocessable } from './problems.ts'
import type { Ask, RefundAsk } from './schema.ts'

export const policyOf = ({ config }: Rules, name: string): Policy | undefined =>
  config.policies.find((policy) => policy.name === name)

/** The policies that a caller asks about, by explicit key or by a request, at the price that the caller names; or what is wrong. */
async function matchedBy(
  asked: Ask | RefundAsk,
  rules: Rules,
  around: Around,
): Promise<Matched | ConfigProblem> {
  const matched =
    'request' in asked
      ? await describedRequest(asked.request, rules, around)
      : await byPolicy(asked, rules)
  const { cost } = asked
  if ('expected' in matched || cost === undefined) return matched
  const policies = matched.policies.map((one) => ('unmet' in one ? one : { ...one, cost }))
  return { ...matched, policies }
}

async function byPolicy(
  { policy: name, key, plan }: Extract<Ask | RefundAsk, { policy: string }>,
  rules: Rules,
): Promise<Matched | ConfigProblem> {
  const policy = policyOf(rules, name)
  if (!policy) return { path: 'policy', expected: 'the name of a policy', got: show(name) }
  const found = await explicitKey(policy, key, plan, rules.config)
  return 'expected' in found ? found : { policies: [found] }
}

/** One thing that is asked, and what the rules make of it. */
export interface MatchedQuestion<A> {
  asked: A
  matched: Matched
}

/** All that a call asks. */
export interface Questions<A> {
  /** Whether it is a list, and so the answer. */
  many: boolean
  questions: MatchedQuestion<A>[]
  idempotency: Idempotency | undefined
}

/** Reads what a call asks, one or a list; or what is wrong with it, each fault with its place. */
export async function readQuestions<A extends Ask | RefundAsk>(
  { request, caller, rules, around }: Call,
  schema: Schema<A | A[]>,
): Promise<Questions<A> | Response> {
  const body = await bodyOf(request, schema)
  if (body instanceof Response) return body
  const many = Array.isArray(body)
  const all = await Promise.all(
    (many ? body : [body]).map(async (asked, index) => {
      const matched = await matchedBy(asked, rules, around)
      const at = many ? `[${index}].` : ''
      return 'expected' in matched ? { ...matched, path: at + matched.path } : { asked, matched }
    }),
  )
  const problems = all.filter((one): one is ConfigProblem => 'expected' in one)
  if (problems.length > 0) return unprocessable(problems)
  const questions = all as MatchedQuestion<A>[]
  const idempotency = await idempotencyOf(request, caller, body, questions)
  return idempotency instanceof Response ? idempotency : { many, questions, idempotency }
}
