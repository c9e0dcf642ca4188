/** Posts signed notices to a webhook, by Standard Webhooks 1.0 (https://www.standardwebhooks.com). */
import { isWithin, systemClock } from '../../core/base/clock.ts'
import { hmac, hmacKey, sha256 } from '../../core/base/digest.ts'
import { retryAfterOf } from '../../core/base/foreign-wait.ts'
import type { Log } from '../../core/base/log.ts'
import { withTimeout } from '../../core/base/sleep.ts'

/** The maximum number of notices that an isolate delivers at the same time. Further ones are dropped. */
const MAX_IN_FLIGHT = 100
/** The longest delivery of a notice, with all attempts. Workers end `waitUntil` 30 s after the response. */
const DEADLINE_MS = 25_000
const ATTEMPT_MS = 8_000
/** The longest wait after the first attempt. Each further one is twice as long. */
const FIRST_WAIT_MS = 500
/** Ends the attempts even if the clock is set back. */
const MAX_ATTEMPTS = 8

const SECRET_PREFIX = 'whsec_'
const utf8 = new TextEncoder()

export interface SenderOptions {
  url: string
  log: Log
  /** ms since the epoch */
  clock?: () => number
  sleep?: (ms: number) => Promise<void>
  /** The timeout of one attempt. */
  attemptMs?: number
}

/** Accepts `https:` URLs without credentials, and `http:` on loopback. */
export function isWebhookUrl(input: unknown): input is string {
  if (typeof input !== 'string' || !URL.canParse(input)) return false
  const { protocol, hostname, username, password } = new URL(input)
  if (username || password) return false
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

/**
 * The HMAC keys of a secret: `whsec_` and base64, or plain text. Several secrets with `whsec_`, separated by spaces, are all used, so
 * that receivers can change from one to the next. Returns `undefined` if a secret is not base64.
 */
export function keysOf(secret: string): Uint8Array<ArrayBuffer>[] | undefined {
  if (!secret.startsWith(SECRET_PREFIX)) return [utf8.encode(secret)]
  try {
    return secret.split(/\s+/).map((one) => {
      const [, base64] = /^whsec_([A-Za-z0-9+/]{2,}={0,2})$/.exec(one)!
      return Uint8Array.from(atob(base64!), (char) => char.charCodeAt(0))
    })
  } catch {
    return undefined
  }
}

/** The field `webhook-signature`: a signature for each key. */
export async function sign(
  keys: Uint8Array<ArrayBuffer>[],
  id: string,
  timestamp: number,
  body: string,
): Promise<string> {
  const signed = `${id}.${timestamp}.${body}`
  const signatures = keys.map(async (bytes) => `v1,${await hmac(await hmacKey(bytes), signed)}`)
  return (await Promise.all(signatures)).join(' ')
}

export function createSender({
  url,
  log,
  clock = systemClock,
  sleep = (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  attemptMs = ATTEMPT_MS,
}: SenderOptions) {
  const inFlight = new Set<{ from: number; until: number }>()
  let dropped = 0
  let secret: unknown = null // not read yet
  let keys: ReturnType<typeof keysOf>

  function readKeys(): ReturnType<typeof keysOf> {
    const text = typeof secret === 'string' ? secret.trim() : ''
    const read = text === '' ? undefined : keysOf(text)
    const why = text
      ? `SLUICE_WEBHOOK_SECRET: expected base64 after ${SECRET_PREFIX}`
      : `set SLUICE_WEBHOOK_SECRET to ${SECRET_PREFIX} and 32 random bytes in base64`
    if (!read) log('webhook', text ? 'bad-secret' : 'no-secret', `no notice is sent: ${why}`)
    return read
  }

  function drop(code: string, message: string) {
    dropped += 1
    log('webhook', code, `a near-limit notice is lost: ${message}`)
  }

  /** Returns undefined if too many notices are in flight. A notice whose request was cancelled counts until its deadline. */
  function begin() {
    const from = clock()
    for (const one of inFlight) if (!isWithin(from, one.from, one.until)) inFlight.delete(one)
    if (inFlight.size >= MAX_IN_FLIGHT) return undefined
    const delivery = { from, until: from + DEADLINE_MS }
    inFlight.add(delivery)
    return delivery
  }

  /** The status is 0 without a response. */
  async function post(id: string, body: string, timeoutMs: number) {
    const timestamp = Math.floor(clock() / 1000)
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': id,
      'webhook-id': id,
      'webhook-timestamp': `${timestamp}`,
      'webhook-signature': await sign(keys!, id, timestamp, body),
    }
    const sending = withTimeout(timeoutMs, async (signal) => {
      const options = { method: 'POST', headers, body, redirect: 'manual', signal } as const
      const response = await fetch(url, options)
      await response.body?.cancel().catch(() => {})
      return { status: response.status, retryAfterMs: retryAfterOf(response.headers, clock()) ?? 0 }
    })
    return sending.catch(() => ({ status: 0, retryAfterMs: 0 }))
  }

  async function deliver(id: string, body: string, until: number): Promise<boolean> {
    let status = 0
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const answer = await post(id, body, Math.min(attemptMs, until - clock()))
      status = answer.status
      if (status >= 200 && status < 300) return true
      if (!isTemporary(status)) {
        drop('rejected', `the receiver answered ${status}`)
        return true
      }
      const backoffMs = FIRST_WAIT_MS * 2 ** attempt * (0.5 + Math.random() / 2)
      const waitMs = Math.max(backoffMs, answer.retryAfterMs)
      if (clock() + waitMs >= until) break
      await sleep(waitMs)
    }
    drop('failed', status ? `the receiver last answered ${status}` : 'the receiver did not answer')
    return false
  }

  return {
    /** False without a usable secret in `SLUICE_WEBHOOK_SECRET`. Logs once what to set. */
    isReady({ SLUICE_WEBHOOK_SECRET: current }: Record<string, unknown>): boolean {
      if (current !== secret) {
        secret = current
        keys = readKeys()
      }
      return keys !== undefined
    },
    /**
     * Posts a JSON document. Call `isReady` first, and run the promise under `waitUntil`. Never rejects.
     * @param name identifies the notice: the same name in two isolates is one notice, which receivers must handle once
     * @param after the delivery to wait for. The deadline includes the wait.
     * @returns true if the receiver accepted or rejected the notice; false if a later delivery may succeed
     */
    async send(name: string, body: string, after?: Promise<unknown>): Promise<boolean> {
      const delivery = begin()
      if (!delivery) {
        drop('full', `${MAX_IN_FLIGHT} are in flight`)
        return false
      }
      await after
      const isDone = await deliver(await sha256(name), body, delivery.until)
      inFlight.delete(delivery)
      return isDone
    },
    /** The number of notices that no receiver accepted. */
    dropped: () => dropped,
  }
}

/** Reports whether a repeated attempt may succeed. A redirect is not followed: the URL must be that of the receiver. */
const isTemporary = (status: number) =>
  status === 0 || status === 408 || status === 429 || status >= 500
