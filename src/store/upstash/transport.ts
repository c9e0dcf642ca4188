import { StoreError } from '../../base/errors.ts'

/** What Redis says to one command. */
export type Answer = { result: unknown } | { error: string }

/**
 * Sends commands over Upstash's REST API. The client's own transport follows redirects (the same call again, up to twenty
 * times, or elsewhere), repeats calls that failed (and may have counted), turns the abort of a plain signal into a result, shares a
 * sync token between the requests of an isolate, and forgets the status.
 */
export function createTransport(url: string, token: string) {
  async function post(url: string, body: unknown, signal: AbortSignal) {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    const said = parse(await response.text())
    if (!said) throw new StoreError('bad-reply', `no JSON, status ${response.status}`)
    return { said, ok: response.ok }
  }

  return {
    async send(command: unknown, signal: AbortSignal): Promise<Answer> {
      const { said, ok } = await post(url, command, signal)
      return answerOf(said, ok)
    },
    /** Several commands in one request, in order; each has its answer. */
    async sendEach(commands: unknown[], signal: AbortSignal): Promise<Answer[]> {
      const { said, ok } = await post(`${url.replace(/\/$/, '')}/pipeline`, commands, signal)
      if (ok && Array.isArray(said) && said.length === commands.length) {
        return said.map((one) => answerOf(Object(one)))
      }
      const answer = answerOf(said, ok)
      if ('result' in answer) throw new StoreError('bad-reply')
      return commands.map(() => answer)
    },
  }
}

function answerOf({ result, error }: { result?: unknown; error?: unknown }, ok = true): Answer {
  return !ok || typeof error === 'string'
    ? { error: String(error || 'no reason given') }
    : { result }
}

/** An object, or `undefined` where the text is none. */
function parse(text: string): { result?: unknown; error?: unknown } | undefined {
  try {
    return Object(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Names the failure. */
export function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const name = error instanceof Error ? error.name : ''
  if (name === 'TimeoutError' || name === 'AbortError') return new StoreError('timeout')
  if (name !== 'UpstashError') return new StoreError('unreachable')
  return refusal((error as Error).message)
}

/** Names what Redis said. Of foreign texts only the first word goes on: the rest may hold keys, tokens or scripts. */
export function refusal(text: string): StoreError {
  if (/^(WRONGPASS|NOAUTH|NOPERM|Unauthorized)\b/i.test(text)) return new StoreError('unauthorized')
  // Whole phrases: a single word may be part of a key that the text repeats.
  if (/max (\w+ )?requests? limit|database has been suspended|budget limit/i.test(text)) {
    return new StoreError('over-quota')
  }
  if (/^OOM\b|DB capacity quota exceeded/i.test(text)) return new StoreError('database-full')
  if (text.startsWith('ERR sluice: idempotency: used'))
    return new StoreError('idempotency-conflict')
  const ours = /^ERR sluice: [\w :,()'-]+/.exec(text)?.[0]
  return new StoreError('redis-error', ours ?? /^[A-Z]{2,20}\b/.exec(text)?.[0])
}
