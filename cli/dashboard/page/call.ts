import type { About } from '../about.ts'
import type { History, Range } from '../ranges.ts'

/** A call that has no usable answer. The message is for the user. */
export class CallError extends Error {
  readonly status: number
  /** The time until the next attempt, s. */
  readonly retryAfter: number
  constructor(status: number, message: string, retryAfter = 0) {
    super(message)
    this.status = status
    this.retryAfter = retryAfter
  }
}

interface Problem {
  detail?: string
  status?: number
}

/** Calls the decision API of the Worker, through the local server. */
export const call = <T>(path: string, body?: object, method?: 'PUT' | 'DELETE'): Promise<T> =>
  send(`/_sluice/v1/${path}`, body, method)

/** The counts of a longer range. */
export const historyOf = (range: Range): Promise<History> => send(`/history?range=${range}`)

/** Exchanges the secret in the fragment of the address for a cookie, and removes it from the address. */
export async function openSession(): Promise<void> {
  const secret = location.hash.slice(1)
  if (!secret) return
  history.replaceState(null, '', '/')
  // Without a session the first call says what to do.
  await fetch('/session', { method: 'POST', body: secret }).catch(() => {})
}

export const about = (): Promise<About> => send('/about')

async function send<T>(path: string, body?: object, method = body ? 'POST' : 'GET'): Promise<T> {
  const response = await fetch(path, {
    method,
    ...(body && { body: JSON.stringify(body) }),
    headers: { 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(15_000),
  }).catch(() => {
    throw new CallError(
      0,
      'The command that serves this page does not respond: sluice dev, or sluice dashboard. Is it still running?',
    )
  })
  const answer = await response.json().catch(() => undefined)
  if (response.ok && answer) return answer
  const retryAfter = Number(response.headers.get('retry-after') ?? 0)
  throw new CallError(response.status, messageOf(response.status, answer ?? {}), retryAfter)
}

function messageOf(status: number, { detail }: Problem): string {
  if (status === 401) {
    return `The Worker refuses the token (401). Start the dashboard with a token of the Worker's variable SLUICE_OPERATE_TOKEN: --token TOKEN, or set the same variable here.`
  }
  return detail ?? `The Worker answers ${status}.`
}

export const messageIn = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
