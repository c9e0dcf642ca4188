import { StoreError } from '../core/base/errors.ts'
import { refund as refundEach } from '../core/decide/operate.ts'
import type { Call } from '../core/endpoint.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { keyConflict, replayedField } from './idempotency.ts'
import { storeFailed } from './problems.ts'
import { readQuestions } from './questions.ts'
import { type RefundAsk, refundBody } from './schema.ts'

/** `POST /_sluice/v1/refund`: refunds all or some units of a charge, and releases slots by id. */
export async function refund(call: Call): Promise<Response> {
  const read = await readQuestions<RefundAsk>(call, refundBody)
  if (read instanceof Response) return read
  const { isList, questions, idempotency } = read
  const { waitUntil } = call.runtime
  const result = await refundEach(
    questions.map(({ ask: { slot, decidedAt }, matched }) => ({
      matched,
      decidedAt,
      ...(slot !== undefined && { slot }),
    })),
    call.parts,
    { waitUntil, idempotency },
  )
  if (result instanceof StoreError) {
    return result.code === 'idempotency-conflict' ? keyConflict() : storeFailed(result)
  }
  const { statuses, replayed } = result
  return jsonAnswer(isList ? statuses : statuses[0], replayedField(replayed))
}
