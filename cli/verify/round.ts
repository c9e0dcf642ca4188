/** Uses up one quota, and counts what passes. */
import type { Policy } from '../../src/core/config/parse.ts'
import { type Answer, type Client, newNonce, type SampleRequest } from './client.ts'

/** How a quota is used up. */
export interface Plan {
  policy: Policy
  request: SampleRequest
  /** The units that one request takes. */
  cost: number
  /** True to state this cost. Otherwise it is the cost that the policy has for the request. */
  states: boolean
  /** The units of the quota. */
  limit: number
  /** How many requests the quota holds. */
  expected: number
  /** True to send all requests at once, because the quota refills faster than one request after the other arrives. */
  together: boolean
}

export interface Round {
  nonce: string
  /** In the order in which they were sent. */
  answers: Answer[]
  passed: number
  /** The first refusal by the policy. */
  refusal: Answer | undefined
  /** How long the requests took, ms. */
  tookMs: number
  /** The requests that may have passed because units came back meanwhile. */
  refilled: number
}

/** More requests than this at once would mostly wait for a connection. */
const MAX_TOGETHER = 40

/** Sends requests until the policy refuses one, or until more have passed than the quota explains. */
export async function playRound(client: Client, plan: Plan): Promise<Round> {
  const { policy, request, cost, states, expected, together } = plan
  const nonce = newNonce()
  const startedAt = performance.now()
  const send = () => client.send(request, { nonce, policy: policy.name, ...(states && { cost }) })
  const answers: Answer[] = []
  if (together) {
    const count = Math.min(MAX_TOGETHER, expected + Math.max(2, Math.ceil(expected / 2)))
    answers.push(...(await Promise.all(Array.from({ length: count }, send))))
  } else {
    while (answers.length < expected + 1 + refill(plan, performance.now() - startedAt)) {
      const answer = await send()
      answers.push(answer)
      if (!answer.decision || isRefusal(answer) || !answer.decision.allowed) break
    }
  }
  const tookMs = performance.now() - startedAt
  return {
    nonce,
    answers,
    passed: answers.filter(({ decision }) => decision?.allowed).length,
    refusal: answers.find(isRefusal),
    tookMs,
    refilled: refill(plan, tookMs),
  }
}

/** True for a refusal by the policy that the request names. */
export function isRefusal({ decision }: Answer): boolean {
  const { policy } = decision ?? {}
  return decision?.allowed === false && policy?.applies === true && policy.state?.allowed === false
}

/** The requests for which units may come back in this time. A fixed window may end at any time. */
export function refill(
  { policy, cost, limit, expected }: Pick<Plan, 'policy' | 'cost' | 'limit' | 'expected'>,
  ms: number,
): number {
  const { algorithm, windowMs } = policy
  if (algorithm === 'concurrency') return 0
  if (algorithm === 'token-bucket') {
    return Math.floor((limit + (ms / windowMs) * policy.limit) / cost) - expected
  }
  // The weight of the window before falls from its end on.
  return ms < windowMs ? 0 : Math.ceil((ms / windowMs) * expected)
}
