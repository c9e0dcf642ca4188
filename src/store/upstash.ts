/** The only file that talks to Redis: Upstash's REST API through its own client, over a transport without that client's traps. */
import { Redis } from '@upstash/redis'
import { StoreError } from '../errors.ts'
import { decode, encode, script, scriptSha } from './script.ts'
import type { Store } from './store.ts'

export interface UpstashOptions {
  /** `UPSTASH_REDIS_REST_URL` */
  url: string | undefined
  /** `UPSTASH_REDIS_REST_TOKEN` */
  token: string | undefined
  /** The longest a call may take, in milliseconds, unless it says otherwise; then it is aborted. It may have counted all the same. Defaults to 300. */
  deadlineMs?: number
  /** Told when the database had lost the script, and got it again. */
  onReload?: () => void
}

/** A store on one Upstash database. Never throws here; what is wrong with the options is told by `decide`. */
export function createUpstashStore({
  url,
  token,
  deadlineMs = 300,
  onReload,
}: UpstashOptions): Store {
  let signal: AbortSignal | undefined
  const redis = isUsable(url) && token ? connect(url, token, () => signal!) : undefined
  let sha: string | undefined
  let loaded = false // whether this isolate has seen the database run the script

  async function run(keys: string[], args: string[], withinMs: number): Promise<unknown> {
    if (!redis) throw new StoreError('not-configured')
    const client = redis
    sha ??= await scriptSha()
    const deadline = AbortSignal.timeout(withinMs) // one for both calls, if there are two
    const call = (how: 'eval' | 'evalsha', text: string) => {
      signal = deadline // which the client asks for before it first waits
      return client[how](text, keys, args)
    }
    // The first call brings the script, so that a cold one costs no second round trip.
    if (!loaded) return call('eval', script)
    try {
      return await call('evalsha', sha)
    } catch (error) {
      if (!textOf(error).startsWith('NOSCRIPT')) throw error
      onReload?.()
      return call('eval', script) // NOSCRIPT: nothing ran, so nothing counts twice
    }
  }

  return {
    async decide(requests, { now, deadlineMs: withinMs = deadlineMs } = {}) {
      const { keys, args } = encode(requests, now)
      let answer: unknown
      try {
        answer = await run(keys, args, withinMs)
      } catch (error) {
        throw toStoreError(error)
      }
      const reply = decode(answer, requests)
      if (!reply) throw new StoreError('bad-reply')
      loaded = true
      return reply
    },
  }
}

/** Reads a text from a database; null where there is none. For what is not on a request's path. */
export function createUpstashReader({
  url,
  token,
  deadlineMs = 5000,
}: Pick<UpstashOptions, 'url' | 'token' | 'deadlineMs'>): (key: string) => Promise<string | null> {
  return async (key) => {
    if (!isUsable(url) || !token) throw new StoreError('not-configured')
    let answer: Awaited<ReturnType<ReturnType<typeof transport>>>
    try {
      answer = await transport(url, token, () => AbortSignal.timeout(deadlineMs))(['GET', key])
    } catch (error) {
      throw toStoreError(error)
    }
    if ('error' in answer) throw new StoreError('redis-error')
    const { result } = answer
    if (result !== null && typeof result !== 'string') throw new StoreError('bad-reply')
    return result
  }
}

// A Redis URL (rediss://…) is no REST URL, and the client would throw its password.
const isUsable = (url: string | undefined): url is string =>
  url !== undefined && /^https?:\/\//.test(url) && URL.canParse(url)

/** The client with a transport of ours, which it allows for. */
function connect(url: string, token: string, signal: () => AbortSignal): Redis {
  const send = transport(url, token, signal)
  return new Redis({
    async request<T>({ body }: { body?: unknown }) {
      const answer = await send(body)
      if ('error' in answer) return answer
      // The script replies integers. The client would make numbers of what only looks like them.
      if (!Array.isArray(answer.result) || !answer.result.every(Number.isSafeInteger)) {
        throw new StoreError('bad-reply')
      }
      return { result: answer.result as T }
    },
  })
}

/**
 * Sends one command. The client's own transport follows redirects (the same call again, up to twenty
 * times, or elsewhere), repeats calls that failed (and may have counted), turns the abort of a plain signal into a result, shares a
 * sync token between the requests of an isolate, and forgets the status.
 * @param signal asked for at the start of each call
 */
function transport(url: string, token: string, signal: () => AbortSignal) {
  return async (command: unknown): Promise<{ result: unknown } | { error: string }> => {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal: signal(),
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(command),
    })
    const answer = parse(await response.text())
    if (!answer) throw new StoreError('bad-reply', `no JSON, status ${response.status}`)
    const { result, error } = answer
    return !response.ok || typeof error === 'string'
      ? { error: String(error || 'no reason given') }
      : { result }
  }
}

/** An object, or `undefined` where the text is none. */
function parse(text: string): { result?: unknown; error?: unknown } | undefined {
  try {
    return Object(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** What Redis said. */
const textOf = (error: unknown): string => (error instanceof Error ? error.message : '')

/** Names the failure. Of foreign texts only the first word goes on: the rest may hold keys, tokens or scripts. */
function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const name = error instanceof Error ? error.name : ''
  const text = textOf(error)
  if (name === 'TimeoutError' || name === 'AbortError') return new StoreError('timeout')
  if (name !== 'UpstashError') return new StoreError('unreachable')
  if (/^(WRONGPASS|NOAUTH|NOPERM|Unauthorized)\b/i.test(text)) return new StoreError('unauthorized')
  if (/max (daily )?requests? limit|suspended|quota|budget/i.test(text)) {
    return new StoreError('over-quota')
  }
  const ours = /^ERR sluice: [\w :,()'-]+/.exec(text)?.[0]
  return new StoreError('redis-error', ours ?? /^[A-Z]{2,20}\b/.exec(text)?.[0])
}
