import { spanText } from '../core/base/duration.ts'
import type { Policy } from '../core/config/parse.ts'
import { type Operation, operate as operateOn } from '../core/decide/operate.ts'
import type { Call } from '../core/endpoint.ts'
import { explicitKey, matchOf } from '../core/program/explicit-key.ts'
import type { Match } from '../core/program/match.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { bodyOf, policyIn } from './call.ts'
import { describedRequest } from './described-request.ts'
import { tryRequest, whyNot } from './explain.ts'
import { conflict, noBans, unprocessable } from './problems.ts'
import { banBody, type Target, targetBody } from './schema.ts'

/** `POST /_sluice/v1/policies/{name}/{operation}`: an operation on one key of a policy. */
export async function operate(call: Call): Promise<Response> {
  const policy = policyIn(call)
  const mode = call.rest.split('/')[1] as 'peek' | 'reset' | 'unban' | 'ban' | 'try'
  if (mode === 'try') return tryRequest(call, policy)
  const { penalty } = policy
  if (mode === 'unban' && !penalty) return noBans(policy)
  if (mode !== 'ban') return onKey(call, policy, await bodyOf(call.request, targetBody), { mode })
  const { for: banMs, ...target } = await bodyOf(call.request, banBody)
  if (!penalty) return noBans(policy)
  if (banMs > penalty.maxMs) {
    const expected = `at most the policy's penalty.max, ${spanText(penalty.maxMs)}`
    return unprocessable([{ path: 'for', expected, got: spanText(banMs) }])
  }
  return onKey(call, policy, target, { mode, banMs })
}

async function onKey(
  call: Call,
  policy: Policy,
  target: Target,
  operation: Operation,
): Promise<Response> {
  const matches = await matchesOf(call, policy, target)
  return jsonAnswer(await operateOn(operation, matches, call.parts, call.runtime))
}

/** Finds the matches of a target. A request may have several quotas of one policy. @throws {Response} without one */
async function matchesOf(
  { rules, runtime }: Call,
  policy: Policy,
  target: Target,
): Promise<Match[]> {
  if (!('request' in target)) {
    const found =
      'key' in target
        ? await explicitKey(policy, target.key, target.plan, rules)
        : matchOf(policy, target.subject, target.plan)
    if ('expected' in found) throw unprocessable([found])
    return [found]
  }
  const matched = await describedRequest(target.request, rules, runtime)
  if ('expected' in matched) throw unprocessable([matched])
  const met = matched.policies.filter(({ terms }) => terms.name === policy.name)
  if (met.length > 0) return met
  const unmet = matched.unmet?.find((one) => one.policy.name === policy.name)
  const why = unmet ? whyNot(unmet) : { unmet: 'deny', by: matched.denied?.by }
  throw conflict(`The policy ${policy.name} does not apply to this request.`, why)
}
