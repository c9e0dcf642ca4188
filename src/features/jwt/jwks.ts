import { isWithin, systemClock } from '../../core/base/clock.ts'
import { download } from '../../core/base/download.ts'
import { parsedJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { WaitQueue } from '../../core/base/wait-queue.ts'
import type { TokenView } from '../../core/request/view.ts'

const MAX_BYTES = 64 * 1024
const FETCH_MS = 5_000
/** A fetch counts as in flight for this long after its timeout, because its request may have been cancelled. */
const MARGIN_MS = 1_000
const MAX_AGE_MS = 10 * 60_000
/** Shortest time between the starts of two fetches while keys are cached. */
const RENEW_MS = 30_000
/** The same without cached keys. It is shorter, because every token is unverified until there are keys. */
const RETRY_MS = 2_000
/** For this long after a wait without result, requests do not wait for keys. */
const NO_WAIT_MS = 10_000

export interface JwksOptions<Keys> {
  url: string
  /** Converts the document to keys; `undefined` if it is not a key set. */
  parse: (document: unknown) => Promise<Keys | undefined>
  /** Longest time that a request waits for the first keys, ms. */
  deadlineMs: number
  /** Receives an event `jwks` for every fetch that fails. */
  log: Log
  /** ms since the epoch */
  clock?: () => number
  /** Timeout of a fetch, ms. */
  fetchMs?: number
}

/** Caches a key set (RFC 7517, 5). After ten minutes it is renewed in the background, and kept until a newer one is there. Never throws. */
export function createJwks<Keys>({
  url,
  parse,
  deadlineMs,
  log,
  clock = systemClock,
  fetchMs = FETCH_MS,
}: JwksOptions<Keys>) {
  let cached: Keys | undefined
  let cachedAt = Number.NEGATIVE_INFINITY
  let fetchedAt = Number.NEGATIVE_INFINITY
  let fetching = false
  let failedAt = Number.NEGATIVE_INFINITY

  const waiting = new WaitQueue<object, true>()

  const within = (since: number, ms: number) => isWithin(clock(), since, since + ms)
  const isFetching = () => fetching && within(fetchedAt, fetchMs + MARGIN_MS)

  function fetchKeys(view: TokenView) {
    if (isFetching() || within(fetchedAt, cached ? RENEW_MS : RETRY_MS)) return
    fetching = true
    fetchedAt = clock()
    view.waitUntil(replaceKeys()) // may outlast the request
  }

  async function replaceKeys(): Promise<void> {
    const headers = { accept: 'application/json' }
    const bounds = { maxBytes: MAX_BYTES, timeoutMs: fetchMs, only: 200 }
    const answer = await download(url, { headers }, bounds)
    const keys =
      'text' in answer ? await parse(parsedJson(answer.text)).catch(() => undefined) : undefined
    fetching = false
    cached = keys ?? cached
    for (const { answer } of waiting) answer(true)
    waiting.clear()
    if (keys !== undefined) {
      cachedAt = clock()
      return
    }
    failedAt = clock()
    const { code, message } =
      'text' in answer ? { code: 'no-keys', message: 'the response has no usable key' } : answer
    log('jwks', code, `the issuer's keys could not be fetched: ${message}`)
  }

  async function waitForKeys(view: TokenView): Promise<void> {
    const waits = !within(failedAt, NO_WAIT_MS)
    fetchKeys(view)
    if (!waits) return
    if (isFetching()) await waiting.join({}, deadlineMs).answered
    if (!cached) failedAt = clock()
  }

  return {
    /** Returns the cached keys. Waits only if there are none yet. */
    async keys(view: TokenView): Promise<Keys | undefined> {
      if (!cached) await waitForKeys(view)
      else if (!within(cachedAt, MAX_AGE_MS)) fetchKeys(view)
      return cached
    },
    /** Fetches newer keys in the background. Called if none of the cached keys verifies a token. */
    renew: fetchKeys,
  }
}
