import type { Policy } from '../config/parse.ts'
import { problem } from '../http/response.ts'
import { rowOf } from '../limiter/limit.ts'
import { type Descriptor, isMet, type Unmet } from '../match/match.ts'
import type { StoreRequest } from '../store/store.ts'
import { bodyOf, type Call } from './call.ts'
import { describedRequest } from './described-request.ts'
import { tryRequest, whyNot } from './explain.ts'
import { explicitKey } from './explicit-key.ts'
import { notFound, unprocessable } from './problems.ts'
import { policyOf } from './questions.ts'
import { banBody, type Target, target } from './schema.ts'
import { DEADLINE_MS, repliesTo, status } from './status.ts'

type Operation = (call: Call, policy: Policy) => Promise<Response>

/** `POST /_sluice/v1/policies/{name}/…`: what operators do about one key of one policy. */
const operations: Record<string, Operation> = {
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

function simply(mode: 'peek' | 'reset' | 'unban'): Operation {
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
  request: Omit<StoreRequest, 'rows'>,
): Promise<Response> {
  const found = await descriptorsOf(call, policy, whose)
  if (found instanceof Response) return found
  const rows = await Promise.all(found.map((one) => rowOf(one, undefined, call.parts.nameSubject)))
  const lists = [[{ ...request, rows }]]
  const { waitUntil } = call.around
  const replies = await repliesTo(lists, call.parts, { deadlineMs: DEADLINE_MS, waitUntil })
  if (replies instanceof Response) return replies
  return Response.json(status(rows, replies[0]!), { headers: { 'Cache-Control': 'no-store' } })
}

/** Whose state, and by which terms. A request may name several quotas. */
async function descriptorsOf(
  { rules, around }: Call,
  policy: Policy,
  whose: Target,
): Promise<Descriptor[] | Response> {
  if ('key' in whose) {
    const found = await explicitKey(policy, whose.key, whose.plan, rules.config)
    return 'expected' in found ? unprocessable([found]) : [found]
  }
  const description = await describedRequest(whose.request, rules, around)
  if ('expected' in description) return unprocessable([description])
  const found = description.policies.filter((one) => one.policy.name === policy.name)
  const met = found.filter(isMet)
  if (met.length > 0) return met
  const unmet = found.find((one): one is Unmet => !isMet(one))
  const why = unmet ? whyNot(unmet) : { unmet: 'deny', by: description.denied?.by }
  return problem(409, {
    title: 'Conflict',
    detail: `The policy ${policy.name} does not meet this request.`,
    ...why,
  })
}
