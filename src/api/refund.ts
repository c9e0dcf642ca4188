import type { Matched } from '../core/decide/matched.ts'
import { refund as refundEach, type Statuses, settleEach } from '../core/decide/operate.ts'
import type { Idempotency, LimiterParts } from '../core/decide/question.ts'
import type { ApiRuntime, Call } from '../core/endpoint.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { replayedField } from './idempotency.ts'
import { type AnyAsk, readQuestions } from './questions.ts'
import { refundBody, settleBody } from './schema.ts'
import type { Shape } from './shapes.ts'

type Correct<A> = (
  charges: (A & { matched: Matched })[],
  parts: LimiterParts,
  options: Pick<ApiRuntime, 'waitUntil'> & { idempotency: Idempotency | undefined },
) => Promise<Statuses>

/** Corrects the charges of a call, each independently. */
const correcting =
  <A extends AnyAsk>(shape: Shape<A | A[]>, correct: Correct<A>) =>
  async (call: Call): Promise<Response> => {
    const { isList, questions, idempotency } = await readQuestions(call, shape)
    const { waitUntil } = call.runtime
    const charges = questions.map(({ ask, matched }) => ({ ...ask, matched }))
    const { statuses, replayed } = await correct(charges, call.parts, { waitUntil, idempotency })
    return jsonAnswer(isList ? statuses : statuses[0], replayedField(replayed))
  }

/** `POST /_sluice/v1/refund`: refunds all or some units of a charge, and releases slots by id. */
export const refund = correcting(refundBody, refundEach)

/** `POST /_sluice/v1/settle`: returns or charges the rest of what a decision has charged, and releases its slots. */
export const settle = correcting(settleBody, settleEach)
