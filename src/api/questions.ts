import type { ConfigProblem } from '../core/base/errors.ts'
import type { Matched } from '../core/decide/matched.ts'
import type { ApiRuntime, Call } from '../core/endpoint.ts'
import { matchedByKeys } from '../core/program/explicit-key.ts'
import type { Rules } from '../core/program/match.ts'
import { bodyOf } from './call.ts'
import { describedRequest } from './described-request.ts'
import { idempotencyOf } from './idempotency.ts'
import { unprocessable } from './problems.ts'
import type { Ask, RefundAsk, SettleAsk } from './schema.ts'
import type { Shape } from './shapes.ts'

export type AnyAsk = Ask | RefundAsk | SettleAsk

/** Finds the policies of an ask, by explicit key or by request, and applies its `cost`. Returns a problem if the ask is invalid. */
async function matchedBy(
  ask: AnyAsk,
  rules: Rules,
  runtime: ApiRuntime,
): Promise<Matched | ConfigProblem> {
  const matched =
    'request' in ask
      ? await describedRequest(ask.request, rules, runtime)
      : await matchedByKeys(rules, 'limits' in ask ? ask.limits : [[ask.policy, ask.key]], ask.plan)
  const cost = 'cost' in ask ? ask.cost : undefined
  if ('expected' in matched || cost === undefined) return matched
  const policies = matched.policies.map((one) => ({ ...one, cost }))
  return { ...matched, policies }
}

/** Reads the ask or the list of asks of a call. The answer to a list is a list too. @throws {Response} 422, or as of `bodyOf` */
export async function readQuestions<A extends AnyAsk>(
  { request, caller, rules, runtime }: Call,
  shape: Shape<A | A[]>,
) {
  const body = await bodyOf(request, shape)
  const isList = Array.isArray(body)
  const all = await Promise.all(
    (isList ? body : [body]).map(async (ask, index) => {
      const matched = await matchedBy(ask, rules, runtime)
      const at = isList ? `[${index}].` : ''
      return 'expected' in matched ? { ...matched, path: at + matched.path } : { ask, matched }
    }),
  )
  const problems = all.filter((one): one is ConfigProblem => 'expected' in one)
  if (problems.length > 0) throw unprocessable(problems)
  const questions = all as { ask: A; matched: Matched }[]
  return { isList, questions, idempotency: await idempotencyOf(request, caller, body, questions) }
}
