import { StoreError } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'
import { problem } from '../http/response.ts'
import { type Operation, operate as operateOn } from '../limiter/operate.ts'
import { isMatch, type Match, type Unmet } from '../match/match.ts'
import { bodyOf, type Call } from './call.ts'
import { describedRequest } from './described-request.ts'
import { tryRequest, whyNot } from './explain.ts'
import { explicitKey } from './explicit-key.ts'
import { notFound, storeFailed, unprocessable } from './problems.ts'
import { policyOf } from './questions.ts'
import { banBody, type Target, target } from './schema.ts'

type Handler = (call: Call, policy: Policy) => Promise<Response>

/** `POST /_sluice/v1/policies/{name}/…`: what operators do about one key of one policy. */
const operations: Record<string, Handler> = {
  peek: simply('peek'),
  reset: simply('reset'),
  unban: (call, policy) => (policy.penalty ? simply('unban')(call, policy) : noPenalty(policy)),
  ban,
  try: tryRequest,
}

export async function operate(call: Call): Promise<Response> {
  const [name = '', operation = ''] = call.rest.split('/')
  const policy = policyOf(call.rules, name)
  if (!policy) return notFound('There is no policy of this name.')
  return operations[operation]!(call, policy)
}

function simply(mode: 'peek' | 'reset' | 'unban'): Handler {
  return async (call, policy) => {
    const body = await bodyOf(call.request, target)
    return body instanceof Response ? body : onKey(call, policy, body, { mode })
  }
}

async function ban(call: Call, policy: Policy): Promise<Response> {
  const body = await bodyOf(call.request, banBody)
  if (body instanceof Response) return body
  const { penalty } = policy
  if (!penalty) return noPenalty(policy)
  const { for: banMs, ...whose } = body
  if (banMs > penalty.maxMs) {
    const expected = `at most the policy's penalty.max, ${penalty.maxMs} ms`
    return unprocessable([{ path: 'for', expected, got: `${banMs} ms` }])
  }
  return onKey(call, policy, whose, { mode: 'ban', banMs })
}

const noPenalty = async ({ name }: Policy): Promise<Response> =>
  problem(409, {
    title: 'Conflict',
    detail: `The policy ${name} bans nobody: give it a penalty, or penalty: 'manual'.`,
  })

async function onKey(
  call: Call,
  policy: Policy,
  whose: Target,
  operation: Operation,
): Promise<Response> {
  const matches = await matchesOf(call, policy, whose)
  if (matches instanceof Response) return matches
  const { waitUntil } = call.around
  const status = await operateOn(operation, matches, call.parts, { waitUntil })
  if (status instanceof StoreError) return storeFailed(status)
  return Response.json(status, { headers: { 'Cache-Control': 'no-store' } })
}

/** Whose state, and by which terms. A request may name several quotas. */
async function matchesOf(
  { rules, around }: Call,
  policy: Policy,
  whose: Target,
): Promise<Match[] | Response> {
  if ('key' in whose) {
    const found = await explicitKey(policy, whose.key, whose.plan, rules.config)
    return 'expected' in found ? unprocessable([found]) : [found]
  }
  const matched = await describedRequest(whose.request, rules, around)
  if ('expected' in matched) return unprocessable([matched])
  const found = matched.policies.filter((one) => one.policy.name === policy.name)
  const met = found.filter(isMatch)
  if (met.length > 0) return met
  const unmet = found.find((one): one is Unmet => !isMatch(one))
  const why = unmet ? whyNot(unmet) : { unmet: 'deny', by: matched.denied?.by }
  return problem(409, {
    title: 'Conflict',
    detail: `The policy ${policy.name} does not meet this request.`,
    ...why,
  })
}
