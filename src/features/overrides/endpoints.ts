import { bodyOf, policyIn } from '../../api/call.ts'
import { badRequest, noOverrides, unprocessable } from '../../api/problems.ts'
import { overrideBody } from '../../api/schema.ts'
import { show } from '../../core/base/errors.ts'
import { largestQuota } from '../../core/base/units.ts'
import type { Policy } from '../../core/config/parse.ts'
import { operate } from '../../core/decide/operate.ts'
import type { Call, Endpoint } from '../../core/endpoint.ts'
import { explicitKey, matchOf } from '../../core/program/explicit-key.ts'
import type { Match } from '../../core/program/match.ts'
import { jsonAnswer } from '../../core/respond/response.ts'
import { changeLimit, listLimits, type OverrideReport } from './documents.ts'

/** The answer of `GET /policies/{name}/keys`. */
export interface OverrideList {
  overrides: OverrideReport[]
}

async function listKeys(call: Call): Promise<Response> {
  const { config, parts, runtime } = call
  const policy = overriddenIn(call)
  const overrides = await listLimits(policy, config, parts.nameSubject, runtime.env)
  return jsonAnswer({ overrides } satisfies OverrideList)
}

async function limitOfKey(call: Call): Promise<Response> {
  const { request, rest, parts, runtime } = call
  const policy = overriddenIn(call)
  const body = request.method === 'PUT' ? await bodyOf(request, overrideBody) : undefined
  const most = largestQuota(policy.algorithm, policy.windowMs)
  if (body && body.limit > most) {
    const expected = `at most ${most}, by the window and the algorithm of the policy`
    return unprocessable([{ path: 'limit', expected, got: `${body.limit}` }])
  }
  const match = await targetOf(call, policy, rest.split('/')[2]!)
  const { waitUntil } = runtime
  const status = await (request.method === 'GET'
    ? operate({ mode: 'peek' }, [match], parts, { waitUntil })
    : changeLimit(
        body ? { mode: 'override', units: body.limit, forMs: body.for } : { mode: 'restore' },
        match,
        parts,
        waitUntil,
      ))
  return jsonAnswer(status)
}

export const overrideEndpoints: Endpoint[] = [
  { path: /^\/policies\/([^/]+)\/keys$/, methods: ['GET'], scopes: ['operate'], answer: listKeys },
  {
    path: /^\/policies\/([^/]+\/keys\/[^/]+)\/limit$/,
    methods: ['GET', 'PUT', 'DELETE'],
    scopes: ['operate'],
    answer: limitOfKey,
  },
]

/** @throws {Response} without the policy, or without its `overrides` */
function overriddenIn(call: Call): Policy {
  const policy = policyIn(call)
  if (policy.overrides) return policy
  throw noOverrides(policy)
}

/** Finds the key of a path: its values, percent-encoded and separated by commas, or `subject:` and a subject. @throws {Response} */
async function targetOf({ rules }: Call, policy: Policy, text: string): Promise<Match> {
  const subject = /^subject:(.*)$/s.exec(text)?.[1]
  if (subject !== undefined) {
    if (/^[\w-]{16}$/.test(subject)) return matchOf(policy, subject) as Match
    const expected = 'a subject: 16 letters, digits, "-" or "_"'
    throw unprocessable([{ path: 'key', expected, got: show(subject) }])
  }
  let values: string[]
  try {
    values = text.split(',').map(decodeURIComponent)
  } catch {
    throw badRequest('The key in the path is not percent-encoded UTF-8.')
  }
  const match = await explicitKey(policy, values, undefined, rules)
  if ('expected' in match) throw unprocessable([match])
  return match
}
