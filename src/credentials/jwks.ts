import type { Log } from '../base/log.ts'
import type { RequestView } from '../request/view.ts'
import { download } from './download.ts'

const MAX_BYTES = 64 * 1024
const FETCH_MS = 5_000
/** A fetch marks itself for so much longer than it may take: the request that began it may be gone without a trace. */
const MARGIN_MS = 1_000
const MAX_AGE_MS = 10 * 60_000
/** From the start of a fetch to that of the next: with keys in hand; and without, when every token counts as unverified meanwhile. */
const RENEW_MS = 30_000
const RETRY_MS = 2_000
/** For so long no request waits after one that waited in vain. */
const HOLD_MS = 10_000
const POLL_MS = 10

export interface JwksOptions<Keys> {
  url: string
  /** Makes keys of the document; `undefined` where it is none. */
  parse: (document: unknown) => Promise<Keys | undefined>
  /** The longest that a request waits for the first keys, in milliseconds. */
  deadlineMs: number
  /** Told, as `jwks`, of every fetch that fails. */
  log: Log
  /** ms since the epoch */
  clock?: () => number
  /** The longest that a fetch may take, in milliseconds. */
  fetchMs?: number
}

/** An issuer's keys as an isolate keeps them. */
export interface Jwks<Keys> {
  /** The keys in hand. Only where there never were any, this waits for them. */
  keys(view: RequestView): Promise<Keys | undefined>
  /** Asks for newer keys in the background: a token was signed by none of these. */
  renew(view: RequestView): void
}

/**
 * A JSON Web Key Set (RFC 7517, 5), fetched by the first request that needs it, renewed in the background when it is ten minutes old,
 * and kept for as long as no newer one is to be had. Requests share plain data and marks in time, never a promise: what one
 * request awaits of another fails under load on Workers. So the first request awaits its own fetch, and others meanwhile look
 * again every 10 ms. Never throws.
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

  /** A clock that was set back ends every wait. */
  const within = (since: number, ms: number) => {
    const age = clock() - since
    return age >= 0 && age < ms
  }
  const busy = () => fetching && within(fetchedAt, fetchMs + MARGIN_MS)

  /** Unless one is under way or has just been made. */
  function fetchKeys(view: RequestView): Promise<void> | undefined {
    if (busy() || within(fetchedAt, kept ? RENEW_MS : RETRY_MS)) return undefined
    fetching = true
    fetchedAt = clock()
    const done = replaceKeys()
    view.waitUntil(done) // the request may be answered before
    return done
  }

  async function replaceKeys(): Promise<void> {
    const answer = await download(url, { maxBytes: MAX_BYTES, timeoutMs: fetchMs })
    const keys = 'text' in answer ? await read(answer.text) : undefined
    fetching = false
    if (keys !== undefined) {
      kept = keys
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
    const own = fetchKeys(view)
    if (!waits) return
    let late = false
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      late = true
      resolve()
    }, deadlineMs)
    if (own) await Promise.race([own, promise])
    while (!own && !late && busy()) await new Promise((next) => setTimeout(next, POLL_MS))
    clearTimeout(timer)
    if (!kept) vainAt = clock()
  }

  return {
    async keys(view) {
      if (!kept) await waitForKeys(view)
      else if (!within(keptAt, MAX_AGE_MS)) fetchKeys(view)
      return kept
    },
    renew(view) {
      fetchKeys(view)
    },
  }
}
