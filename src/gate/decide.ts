import { sha256 } from '../credentials/digest.ts'
import type { Decision } from '../decision.ts'
import { StoreError } from '../errors.ts'
import { decideEach, type Outcome, type Question } from '../limiter.ts'
import { retryAfter, withDecisionFields } from '../response.ts'
import { type Ask, decideBody } from '../schema/gate.ts'
import type { Once } from '../store/store.ts'
import { readAsking } from './asked.ts'
import type { Call } from './call.ts'
import { usedBefore } from './once.ts'

/** `POST /_sluice/v1/decide`: one decision, its status 200 or 429; or a list of them, in one round trip. */
export async function decide(call: Call): Promise<Response> {
  const asking = await readAsking<Ask>(call, decideBody)
  if (asking instanceof Response) return asking
  const { many, described, once } = asking
  const takes = described.some(({ asked }) => asked.mode !== 'look')
  const questions = await Promise.all(
    described.map(async ({ asked: { mode = 'take' }, description }, index): Promise<Question> => {
      // A repeated call holds the slots that the first one took; another under the same key, later, does not.
      const slot = once && (await slotOf(once, index))
      return { description, mode, ...(slot && { slot }) }
    }),
  )
  let outcomes: Outcome[]
  try {
    outcomes = await decideEach(questions, call.parts, {
      waitUntil: call.around.waitUntil,
      spentMs: call.spentMs,
      ...(once && takes && { once }),
    })
  } catch (error) {
    if (error instanceof StoreError) return usedBefore()
    throw error
  }
  const headers = {
    'Cache-Control': 'no-store',
    ...(outcomes.some(({ replayed }) => replayed) && { 'Idempotent-Replayed': 'true' }),
  }
  const decisions = outcomes.map(({ decision }) => decision)
  return many ? Response.json(decisions, { headers }) : one(decisions[0]!, headers, call)
}

function one(decision: Decision, headers: Record<string, string>, { config }: Call): Response {
  const status = decision.allowed ? 200 : 429
  const answer = Response.json(decision, {
    status,
    headers: { ...headers, ...retryAfter(decision) },
  })
  return withDecisionFields(answer, decision, config, { own: true })
}

const slotOf = async ({ key, fingerprint }: Once, index: number) =>
  (await sha256(`${key} ${fingerprint} ${index}`)).slice(0, 32)
