/** Policies that change while the Worker runs. */
import { StoreError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Live } from '../config/schema/live.ts'
import type { RuntimeContext } from '../request/view.ts'

/** Every fault of a document has a line; a long one would be told at a length that no log takes. */
const MAX_MESSAGE = 2_000

export interface LiveParts<T> {
  live: Live
  /** What holds without a document. */
  fallback: T
  /** Makes of a document what holds. @throws {ConfigError} */
  compile: (document: unknown) => T
  /** Finds the text of the document; null where there is none. */
  read: (runtime: RuntimeContext) => Promise<string | null>
  log: Log
  /** ms since the epoch */
  clock?: () => number
}

/**
 * Hands out what holds now, at once, whatever becomes of the document: it is read in the background of a request, at most every
 * `live.everyMs` in an isolate. A request sees what an earlier one found. What is wrong, or cannot be read, changes nothing.
 */
export function createLive<T>({
  live,
  fallback,
  compile,
  read,
  log,
  clock = Date.now,
}: LiveParts<T>): (runtime: RuntimeContext) => T {
  let current = fallback
  let known: string | null = null // the last document, good or not: each is told of once
  let unread: string | undefined // why, likewise
  let lookedAt = Number.NEGATIVE_INFINITY
  let reads = 0
  let newest = 0 // of those that came back

  async function refresh(runtime: RuntimeContext) {
    const turn = ++reads
    let text: string | null
    try {
      text = await read(runtime)
    } catch (error) {
      const code = error instanceof StoreError ? error.code : ((error as Error)?.name ?? '')
      if (turn < newest || code === unread) return
      unread = code
      log('live-unread', code, 'the live policies could not be read: the last ones stay')
      return
    }
    if (turn < newest) return // a later read was faster: this document is old
    newest = turn
    unread = undefined
    if (text === known) return
    known = text
    try {
      current = text === null ? fallback : compile(JSON.parse(text))
      log(
        'live-changed',
        '',
        text === null
          ? 'the live policies are gone: those of the deployment hold'
          : 'new live policies hold',
      )
    } catch (error) {
      log(
        'live-refused',
        (error as Error)?.name ?? '',
        `the last good policies stay: ${String((error as Error)?.message).slice(0, MAX_MESSAGE)}`,
      )
    }
  }

  return (runtime) => {
    const now = clock()
    // A mark and no promise: no request waits for what another one does.
    if (now - lookedAt >= live.everyMs || now < lookedAt) {
      lookedAt = now
      runtime.waitUntil(refresh(runtime))
    }
    return current
  }
}
