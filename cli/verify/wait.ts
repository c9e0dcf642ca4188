/** The wait that a refusal promises must be exact. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from './client.ts'
import type { Plan, Round } from './round.ts'
import type { Result } from './spelling.ts'

/** Waits out a refusal. A request before its end must be refused, and one after it must pass. */
export async function checkWait(
  { policy, request, cost, states }: Plan,
  { nonce, refusal }: Round,
  client: Client,
  maxWaitMs: number,
): Promise<Result | undefined> {
  const { retryAfterMs, decidedAt, policy: state } = refusal!.decision!
  if (policy.algorithm === 'concurrency' || retryAfterMs === undefined) return undefined
  const field = refusal!.headers.get('retry-after')
  const { retryAfter: sent = null, refusedBy = [] } = refusal!.decision!
  if (field !== sent) {
    const text = `Retry-After is ${field ?? 'missing'}, and Sluice has sent ${sent ?? 'none'}: a server in front changes the field`
    return { text, isWrong: true }
  }
  const exact = Math.ceil(retryAfterMs / 1000)
  // An own refusal may leave the field out, and jitter makes it longer.
  if (sent === null) return { text: 'without Retry-After' }
  const seconds = Number(sent)
  // Beside a policy that counts slots, the field promises when one may be free.
  if (seconds < exact && refusedBy.length === 1) {
    const text = `Retry-After is ${sent}, and the wait is ${exact} s`
    return { text, isWrong: true }
  }
  const isExact = seconds === exact ? 'was exact' : `covers the wait of ${exact} s`
  // Each early request counts towards a ban.
  if (policy.penalty) return { text: `Retry-After ${seconds} s` }
  if (retryAfterMs > maxWaitMs) return { text: `Retry-After ${seconds} s (not waited for)` }
  const send = () => client.send(request, { nonce, policy: policy.name, ...(states && { cost }) })
  const rest = () => refusal!.receivedAt + retryAfterMs - performance.now()
  const marginMs = refusal!.ms + 100
  if (rest() > 2 * marginMs) {
    await sleep(rest() - marginMs)
    const { decision } = await send()
    const isEarly =
      decision?.decidedAt !== undefined &&
      decidedAt !== undefined &&
      decision.decidedAt < decidedAt + retryAfterMs
    if (decision?.allowed && isEarly) {
      const earlyMs = decidedAt! + retryAfterMs - decision.decidedAt!
      return { text: `a request passed ${earlyMs} ms before Retry-After`, isWrong: true }
    }
    // It was late, and has taken what the next request would need.
    if (decision?.allowed) return { text: `Retry-After ${seconds} s` }
  }
  if (rest() > 0) await sleep(rest() + 5)
  const { decision } = await send()
  if (decision && !decision.allowed && state?.applies) {
    const moreMs = decision.retryAfterMs ?? 0
    return {
      text: `a request after Retry-After is refused for another ${moreMs} ms`,
      isWrong: true,
    }
  }
  return { text: `Retry-After ${seconds} s ${isExact}` }
}
