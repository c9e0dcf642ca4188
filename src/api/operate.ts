import { spanText } from '../core/base/duration.ts'
import type { Policy } from '../core/config/parse.ts'
import { type Operation, operate as operateOn } from '../core/decide/operate.ts'
import type { Call } from '../core/endpoint.ts'
import { explicitKey, matchOf, policyOf } from '../core/program/explicit-key.ts'
import type { Match } from '../core/program/match.ts'
import { jsonAnswer, problem } from '../core/respond/response.ts'
import { bodyOf } from './call.ts'
import { describedRequest } from './described-request.ts'
import { tryRequest, whyNot } from './explain.ts'
import { notFound, unprocessable } from './problems.ts'
import { banBody, type Target, targetBody } from './schema.ts'

type Handler = (call: Call, policy: Policy) => Promise<Response>

/** The operations on one key of a policy: `POST /_sluice/v1/policies/{name}/{operation}`. */
const operations: Record<string, Handler> = {
  peek: onTarget('peek'),
  reset: onTarget('reset'),
  unban: (call, policy) => (policy.penalty ? onTarget('unban')(call, policy) : noPenalty(policy)),
  ban,
  try: tryRequest,
}

export async function operate(call: Call): Promise<Response> {
  const [name = '', operation = ''] = call.rest.split('/')
  const policy = policyOf(call.rules, name)
  if (!policy) return notFound('There is no policy with this name.')
  return operations[operation]!(call, policy)
}

function onTarget(mode: 'peek' | 'reset' | 'unban'): Handler {
  return async (call, policy) => {
    const body = await bodyOf(call.request, targetBody)
    return body instanceof Response ? body : onKey(call, policy, body, { mode })
  }
}

async function ban(call: Call, policy: Policy): Promise<Response> {
  const body = await bodyOf(call.request, banBody)
  if (body instanceof Response) return body
  const { penalty } = policy
  if (!penalty) return noPenalty(policy)
  const { for: banMs, ...target } = body
  if (banMs > penalty.maxMs) {
    const expected = `at most the policy's penalty.max, ${spanText(penalty.maxMs)}`
    return unprocessable([{ path: 'for', expected, got: spanText(banMs) }])
  }
  return onKey(call, policy, target, { mode: 'ban', banMs })
}

const noPenalty = async ({ name }: Policy): Promise<Response> =>
  problem(409, {
    title: 'Conflict',
    detail: `The policy ${name} has no bans. Set penalty, for example to 'manual'.`,
  })

async function onKey(
  call: Call,
  policy: Policy,
  target: Target,
  operation: Operation,
): Promise<Response> {
  const matches = await matchesOf(call, policy, target)
  if (matches instanceof Response) return matches
  const { waitUntil } = call.runtime
  return jsonAnswer(await operateOn(operation, matches, call.parts, { waitUntil }))
}

/** Finds the matches of a target. A request may have several quotas of one policy. */
async function matchesOf(
  { rules, runtime }: Call,
  policy: Policy,
  target: Target,
): Promise<Match[] | Response> {
  if (!('request' in target)) {
    const found =
      'key' in target
        ? await explicitKey(policy, target.key, target.plan, rules.config)
        : matchOf(policy, target.subject, target.plan)
    return 'expected' in found ? unprocessable([found]) : [found]
  }
  const matched = await describedRequest(target.request, rules, runtime)
  if ('expected' in matched) return unprocessable([matched])
  const isOwn = (one: { policy: Policy }) => one.policy.name === policy.name
  const met = matched.policies.filter(isOwn)
  if (met.length > 0) return met
  const unmet = matched.unmet?.find(isOwn)
  const why = unmet ? whyNot(unmet) : { unmet: 'deny', by: matched.denied?.by }
  return problem(409, {
    title: 'Conflict',
    detail: `The policy ${policy.name} does not apply to this request.`,
    ...why,
  })
}
