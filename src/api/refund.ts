import { refund as refundEach, type Statuses, settleEach } from '../core/decide/operate.ts'
import type { Call } from '../core/endpoint.ts'
import { jsonAnswer } from '../core/respond/response.ts'
import { replayedField } from './idempotency.ts'
import { type Questions, readQuestions } from './questions.ts'
import { type RefundAsk, refundBody, type SettleAsk, settleBody } from './schema.ts'

/** `POST /_sluice/v1/refund`: refunds all or some units of a charge, and releases slots by id. */
export async function refund(call: Call): Promise<Response> {
  const read = await readQuestions<RefundAsk>(call, refundBody)
  const questions = read.questions.map(({ ask: { slot, decidedAt }, matched }) => {
    return { matched, decidedAt, slot }
  })
  return answerOf(read, await refundEach(questions, call.parts, optionsOf(call, read)))
}

/** `POST /_sluice/v1/settle`: returns or charges the rest of what a decision has charged, and releases its slots. */
export async function settle(call: Call): Promise<Response> {
  const read = await readQuestions<SettleAsk>(call, settleBody)
  const questions = read.questions.map(({ ask: { used, decision }, matched }) => ({
    matched,
    used,
    decision,
  }))
  return answerOf(read, await settleEach(questions, call.parts, optionsOf(call, read)))
}

const optionsOf = (
  { runtime: { waitUntil } }: Call,
  { idempotency }: Pick<Questions<unknown>, 'idempotency'>,
) => ({ waitUntil, idempotency })

const answerOf = (
  { isList }: Pick<Questions<unknown>, 'isList'>,
  { statuses, replayed }: Statuses,
): Response => jsonAnswer(isList ? statuses : statuses[0], replayedField(replayed))
