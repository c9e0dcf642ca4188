import { sha256 } from '../core/base/digest.ts'
import { HELD_MS } from '../core/base/held.ts'
import { decideEach } from '../core/decide/decide.ts'
import { observe } from '../core/decide/observed.ts'
import type { Idempotency, Question } from '../core/decide/question.ts'
import type { Call } from '../core/endpoint.ts'
import { jsonAnswer, retryAfter, withDecisionFields } from '../core/respond/response.ts'
import { replayedField } from './idempotency.ts'
import { readQuestions } from './questions.ts'
import { type Ask, decideBody } from './schema.ts'

/** `POST /_sluice/v1/decide`: one decision with status 200 or 429, or a list of decisions in one round trip. */
export async function decide(call: Call): Promise<Response> {
  const { isList, questions: asks, idempotency } = await readQuestions<Ask>(call, decideBody)
  const takes = asks.some(({ ask }) => ask.mode !== 'peek')
  const questions = await Promise.all(
    asks.map(
      async ({ ask: { mode = 'take', waitMs = HELD_MS }, matched }, index): Promise<Question> => {
        // A repetition must hold the same slots as the first call. Another body under the same key must not.
        const slot = idempotency && (await slotOf(idempotency, index))
        return { matched, mode, waitMs, slot }
      },
    ),
  )
  const outcomes = await decideEach(questions, call.parts, {
    ...call.runtime,
    request: call.request,
    ...(idempotency && takes && { idempotency }),
  })
  asks.forEach(({ ask, matched }, index) => {
    if (ask.mode === 'peek') return // not a decision about a request
    const about = 'request' in ask ? ask.request : {}
    observe(call.parts, matched, outcomes[index]!, about, call.runtime)
  })
  const headers = replayedField(outcomes.some(({ replayed }) => replayed))
  const decisions = outcomes.map(({ decision }) => decision)
  if (isList) return jsonAnswer(decisions, headers)
  const decision = decisions[0]!
  const status = decision.allowed ? 200 : 429
  const answer = jsonAnswer(decision, { ...headers, ...retryAfter(decision) }, status)
  return withDecisionFields(answer, decision, call.config)
}

const slotOf = async ({ key, fingerprint }: Idempotency, index: number) =>
  (await sha256(`${key} ${fingerprint} ${index}`)).slice(0, 32)
