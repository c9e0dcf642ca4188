import { isWithin } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { WaitQueue } from '../base/wait-queue.ts'
import type { RequestView } from '../request/view.ts'
import { download } from './download.ts'

const MAX_BYTES = 64 * 1024
const FETCH_MS = 5_000
/** A fetch counts as in flight this much longer than it may take. Its request may have been cancelled. */
const MARGIN_MS = 1_000
const MAX_AGE_MS = 10 * 60_000
/** From the start of a fetch to the start of the next, with keys and without. Without keys every token counts as unverified. */
const RENEW_MS = 30_000
const RETRY_MS = 2_000
/** After a request waited without result, the next ones do not wait for this long. */
const HOLD_MS = 10_000

export interface JwksOptions<Keys> {
  url: string
  /** Converts the document to keys; `undefined` if it is not a key set. */
  parse: (document: unknown) => Promise<Keys | undefined>
  /** How long a request waits for the first keys, ms. */
  deadlineMs: number
  /** Receives an event `jwks` for every fetch that fails. */
  log: Log
  /** ms since the epoch */
  clock?: () => number
  /** How long a fetch may take, ms. */
  fetchMs?: number
}

export interface Jwks<Keys> {
  /** Returns the cached keys. Waits only if there never were any. */
  keys(view: RequestView): Promise<Keys | undefined>
  /** Fetches newer keys in the background, for a token that is signed by none of these. */
  renew(view: RequestView): void
}

/**
 * A JSON Web Key Set (RFC 7517, 5), fetched by the first request that needs it, renewed in the background when it is ten minutes old,
 * and kept until a newer one is available. Never throws.
 */
export function createJwks<Keys>({
  url,
  parse,
  deadlineMs,
  log,
  clock = Date.now,
  fetchMs = FETCH_MS,
}: JwksOptions<Keys>): Jwks<Keys> {
  let kept: Keys | undefined
  let keptAt = Number.NEGATIVE_INFINITY
  let fetchedAt = Number.NEGATIVE_INFINITY
  let fetching = false
  let vainAt = Number.NEGATIVE_INFINITY

  const waiting = new WaitQueue<object, true>()

  const within = (since: number, ms: number) => isWithin(clock(), since, since + ms)
  const busy = () => fetching && within(fetchedAt, fetchMs + MARGIN_MS)

  /** Fetches unless a fetch is in flight or has just been made. */
  function fetchKeys(view: RequestView) {
    if (busy() || within(fetchedAt, kept ? RENEW_MS : RETRY_MS)) return
    fetching = true
    fetchedAt = clock()
    view.waitUntil(replaceKeys()) // the request may be answered before
  }

  async function replaceKeys(): Promise<void> {
    const answer = await download(url, { maxBytes: MAX_BYTES, timeoutMs: fetchMs })
    const keys = 'text' in answer ? await read(answer.text) : undefined
    fetching = false
    kept = keys ?? kept
    for (const { answer } of waiting) answer(true)
    waiting.clear()
    if (keys !== undefined) {
      keptAt = clock()
      return
    }
    vainAt = clock()
    const { code, message } =
      'text' in answer ? { code: 'no-keys', message: 'no usable key was in what came' } : answer
    log('jwks', code, `the issuer's keys could not be fetched: ${message}`)
  }

  async function read(text: string): Promise<Keys | undefined> {
    try {
      return await parse(JSON.parse(text))
    } catch {
      return undefined
    }
  }

  async function waitForKeys(view: RequestView): Promise<void> {
    const waits = !within(vainAt, HOLD_MS)
    fetchKeys(view)
    if (!waits) return
    if (busy()) await waiting.join({}, deadlineMs).answered
    if (!kept) vainAt = clock()
  }

  return {
    async keys(view) {
      if (!kept) await waitForKeys(view)
      else if (!within(keptAt, MAX_AGE_MS)) fetchKeys(view)
      return kept
    },
    renew: fetchKeys,
  }
}
