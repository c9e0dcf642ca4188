/** Refusals in the error format of the protocol that a request speaks. */
import type { ErrorFormat } from '../../core/config/schema/refusal-fields.ts'
import type { ErrorBody } from '../../core/respond/refusal.ts'
import type { Content } from './read.ts'

/** Most requests of a batch that get an error each. */
const MAX_ERRORS = 100

/** EIP-1474 has the only published code of refused requests: its clients wait and try again. JSON-RPC leaves both codes to servers. */
const LIMIT_EXCEEDED = -32005
const SERVER_ERROR = -32000

const codes: Record<number, string> = {
  429: 'RATE_LIMITED',
  403: 'FORBIDDEN',
  503: 'SERVICE_UNAVAILABLE',
}

/** @param problem the problem document of the refusal */
export function errorBody(
  format: ErrorFormat,
  content: Content,
  problem: Record<string, unknown>,
  accept: string,
): ErrorBody {
  const { type: _, title, detail, status, ...rest } = problem
  const message = `${title}. ${detail}`
  const value = content && 'value' in content ? content.value : undefined
  if (format === 'graphql') {
    const extensions = { code: codes[status as number], ...rest }
    const answer = { errors: [{ message, extensions }] }
    const isBatch = Array.isArray(value) && value.length > 0 && value.length <= MAX_ERRORS
    return {
      body: isBatch ? value.map(() => answer) : answer,
      type: /application\/graphql-response\+json/i.test(accept)
        ? 'application/graphql-response+json'
        : 'application/json',
      isAnswer: Object(value) === value,
    }
  }
  const code = status === 429 ? LIMIT_EXCEEDED : SERVER_ERROR
  const error = { code, message, data: { status, ...rest } }
  const errorFor = (id: unknown) => ({ jsonrpc: '2.0', id, error })
  const requests = [value].flat().filter(isRequest)
  const isAnswer = requests.length > 0 && requests.length <= MAX_ERRORS
  const errors = isAnswer ? requests.map(({ id }) => errorFor(id)) : [errorFor(null)]
  const body = Array.isArray(value) && isAnswer ? errors : errors[0]
  return { body, type: 'application/json', isAnswer }
}

/** True for a request of JSON-RPC, and false for a notification or a response, which get no answer. */
const isRequest = (item: unknown): item is { id: unknown } =>
  Object(item) === item &&
  Object.hasOwn(item as object, 'method') &&
  /^(string|number)$/.test(typeof (item as { id?: unknown }).id)
