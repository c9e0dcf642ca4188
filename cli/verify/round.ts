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
  /** The windows of a calendar or of the clock that ended meanwhile. */
  ended: number
  /** The requests that may have passed because units came back meanwhile. */
  refilled: number
}

/** A round ends after as many requests as this many windows hold. */
const MAX_WINDOWS = 3
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
    // Each window that ends lets more pass, so answers that come ever later would never end.
    const most = MAX_WINDOWS * (expected + 1)
    while (
      answers.length < Math.min(most, expected + 1 + refill(plan, performance.now() - startedAt))
    ) {
      const answer = await send()
      answers.push(answer)
      if (!answer.decision || isRefusal(answer) || !answer.decision.allowed) break
    }
  }
  const tookMs = performance.now() - startedAt
  const ended = windowsEnded(policy, answers)
  return {
    nonce,
    answers,
    passed: answers.filter(({ decision }) => decision?.allowed).length,
    refusal: answers.find(isRefusal),
    tookMs,
    ended,
    refilled: Math.max(refill(plan, tookMs), ended * expected),
  }
}

/** True for a refusal by the policy that the request names. */
export function isRefusal({ decision }: Answer): boolean {
  const { policy } = decision ?? {}
  return decision?.allowed === false && policy?.applies === true && policy.state?.allowed === false
}

/** The windows of a calendar or of the clock that ended between the first and the last of some answers, by the clock of the store. */
export function windowsEnded(
  { algorithm, align, calendar, windowMs }: Policy,
  answers: Answer[],
): number {
  const times = answers.flatMap(({ decision }) => decision?.decidedAt ?? [])
  if (algorithm !== 'fixed-window' || times.length === 0) return 0
  const [from, to] = [Math.min(...times), Math.max(...times)]
  if (calendar) return to < calendar.periodAt(from)[1] ? 0 : 1
  return align === 'clock' ? Math.floor(to / windowMs) - Math.floor(from / windowMs) : 0
}

/** The requests for which units may come back in this time, apart from windows that end by the clock (`windowsEnded`). */
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
