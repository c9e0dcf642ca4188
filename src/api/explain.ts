import type { Denied, KeyFault, Lacking } from '../core/base/decision.ts'
import type { Part } from '../core/base/part.ts'
import type { Policy } from '../core/config/parse.ts'
import type { Call } from '../core/endpoint.ts'
import type { Unmet } from '../core/program/match.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { bodyOf } from './call.ts'
import { describedRequest } from './described-request.ts'
import { unprocessable } from './problems.ts'
import { tryBody } from './schema.ts'

/** One part of a key, with its value in a request. `null` without a `fault` means that the value is missing. */
export interface PartValue {
  part: string
  value: string | null
  fault?: KeyFault
}

/** The answer of `try`: whether and how a policy applies to a request. */
export type Trial = {
  policy: string
  /** Present if a list denies the request, or a policy denies it for a missing key. */
  denied?: Denied
} & (
  | {
      met: true
      mode: Policy['mode']
      key: PartValue[]
      /** The values that the policy counts. Present with `distinct`. */
      values?: PartValue[]
      /** The keys of further quotas that are charged, because origins may read the path in several ways. */
      otherKeys?: PartValue[][]
      limit: number
      windowMs: number
      cost: number
      /** The units that the request must leave free, because of `reserve`. Absent if it may use the whole quota. */
      floor?: number
    }
  | ({
      met: false
      unmet: 'match' | 'allow' | 'key' | 'deny'
      field?: string
      entry?: string
    } & Lacking)
)

export const whyNot = ({ policy, ...why }: Unmet) => why

/** `POST /_sluice/v1/policies/{name}/try`: reports how a policy applies to a request, without a charge. */
export async function tryRequest(call: Call, { name }: Policy): Promise<Response> {
  const { request } = await bodyOf(call.request, tryBody)
  const matched = await describedRequest(request, call.rules, call.runtime)
  if ('expected' in matched) throw unprocessable([matched])
  const { denied, policies, unmet } = matched
  const [found, ...others] = policies.filter(({ terms }) => terms.name === name)
  const why = unmet?.find(({ policy }) => policy.name === name)
  const about = { policy: name, ...(denied && { denied }) }
  if (!found) {
    const unmet = why ? whyNot(why) : { unmet: 'deny' as const }
    return jsonAnswer({ ...about, met: false, ...unmet } satisfies Trial)
  }
  const { partitionKey, distinct, cost, floor, period } = found
  const { mode, limit, windowMs } = found.terms
  return jsonAnswer({
    ...about,
    met: true,
    mode,
    key: keyValues(partitionKey),
    ...(distinct && { values: keyValues(distinct) }),
    ...(others.length > 0 && { otherKeys: others.map((one) => keyValues(one.partitionKey)) }),
    limit,
    windowMs: period ? period[1] - period[0] : windowMs,
    cost,
    ...(floor !== undefined && { floor }),
  } satisfies Trial)
}

export const keyValues = (parts: Part[]): PartValue[] =>
  parts.map(([part, value, fault]) => ({ part, value: value ?? null, ...(fault && { fault }) }))
