import type { CommandAnswer, SendCommands } from '../../base/commands.ts'
import { StoreError } from '../../base/errors.ts'
import { parsedJson } from '../../base/json.ts'

/**
 * Creates a sender over Upstash's REST API. By default the client `@upstash/redis` follows redirects, and so repeats a call up to twenty times
 * or sends it to another server; it retries failed calls, which may already have been charged; it returns the abort of a plain signal as a
 * result; it shares a sync token between the requests of an isolate; and it drops the HTTP status.
 */
export function restSender(url: string, token: string): SendCommands {
  const fields = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  let headers: Headers | undefined
  const pipelineUrl = `${url.replace(/\/$/, '')}/pipeline`
  return async (commands, signal) => {
    headers ??= new Headers(fields) // fails for some tokens, which is an error of the call
    const isOne = commands.length === 1
    const body = JSON.stringify(isOne ? commands[0] : commands)
    const request: RequestInit = { method: 'POST', redirect: 'manual', headers, body }
    if (signal) request.signal = signal
    const response = await fetch(isOne ? url : pipelineUrl, request)
    const parsed = parsedJson(await response.text())
    if (parsed === undefined)
      throw new StoreError('bad-reply', `not JSON, status ${response.status}`)
    const reply = Object(parsed)
    if (isOne) return [answerOf(reply, response.ok)]
    if (response.ok && Array.isArray(reply) && reply.length === commands.length)
      return reply.map((one) => answerOf(Object(one)))
    const answer = answerOf(reply, response.ok)
    if ('result' in answer) throw new StoreError('bad-reply')
    return commands.map(() => answer)
  }
}

const answerOf = ({ result, error }: Record<string, unknown>, ok = true): CommandAnswer =>
  !ok || typeof error === 'string' ? { error: String(error || 'no reason given') } : { result }

export function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const name = error instanceof Error ? error.name : ''
  if (name === 'TimeoutError' || name === 'AbortError') return new StoreError('timeout')
  return new StoreError('unreachable')
}

/** The hint for keys in several slots of a Redis Cluster. */
const CROSSSLOT = "CROSSSLOT: write use: [cluster()] with cluster from 'sluice/features'"

/** What Upstash and Redis write behind ERR, as far as it names no key. */
const PHRASE =
  /^ERR (max [a-z ]{1,40} exceeded|error (running|compiling) script|unknown command|dynamic keys are not allowed)/i

/**
 * Classifies an error text of Redis. Of another text it keeps the code, that of an error within a script, or a known phrase behind ERR: the rest
 * may contain keys, tokens or scripts.
 */
export function refusal(text: string): StoreError {
  if (/^(WRONGPASS|NOAUTH|NOPERM|Unauthorized)\b/i.test(text)) return new StoreError('unauthorized')
  // Match whole phrases: a single word may be part of a key that the text quotes.
  if (
    /max (\w+ )?(requests?|bandwidth) limit|max commands per second|database has been suspended|budget limit/i.test(
      text,
    )
  ) {
    return new StoreError('over-quota')
  }
  if (/^OOM\b|DB capacity quota exceeded/i.test(text)) return new StoreError('database-full')
  if (text.startsWith('ERR sluice: idempotency: used'))
    return new StoreError('idempotency-conflict')
  // The bridge has no answer of Redis: the command may have run.
  if (/^ERR Redis (is not reachable|disconnected|did not respond|was busy)/.test(text))
    return new StoreError('unreachable')
  if (text.startsWith('CROSSSLOT')) return new StoreError('redis-error', CROSSSLOT)
  const ours = /^ERR sluice: [\w :,()'-]+/.exec(text)?.[0]
  const inScript = /^ERR .*: -([A-Z]{4,20}) /.exec(text)?.[1]
  const [words] = PHRASE.exec(text) ?? /^[A-Z]{2,20}\b/.exec(text) ?? []
  return new StoreError('redis-error', ours ?? inScript ?? words)
}
