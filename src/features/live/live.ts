/** Live policies: a document in Redis or KV replaces the deployed policies while the Worker runs. */
import { isWithin, systemClock } from '../../core/base/clock.ts'
import { ConfigError, StoreError } from '../../core/base/errors.ts'
import type { Log } from '../../core/base/log.ts'
import type { RuntimeContext } from '../../core/base/runtime.ts'
import type { Soon } from '../../core/base/when-known.ts'
import type { Live } from './fields.ts'

/** The maximum length of an error in the log. A document can have any number of problems, each with its own line. */
const MAX_MESSAGE = 2_000

export interface LiveParts<T> {
  live: Live
  fallback: T
  /** Makes the value of a document. @throws {ConfigError} */
  compile: (document: unknown) => Soon<T>
  /** Reads the text of the document; null if there is no document. */
  read: (runtime: RuntimeContext) => Promise<string | null>
  log: Log
  /** ms since the epoch */
  clock?: () => number
}

/** Returns the current value, and never waits: a request reads the document in the background. An invalid or unreadable one changes nothing. */
export function createLive<T>({
  live,
  fallback,
  compile,
  read,
  log,
  clock = systemClock,
}: LiveParts<T>): (runtime: RuntimeContext) => T {
  let current = fallback
  let lastText: string | null = null // the last document, valid or not: each one is logged once
  let lastReadError: string | undefined // each reason is logged once
  let lastReadAt = Number.NEGATIVE_INFINITY
  let readsStarted = 0
  let newestFinished = 0

  async function refresh(runtime: RuntimeContext) {
    const number = ++readsStarted
    try {
      const text = await read(runtime)
      if (number < newestFinished) return // a later read finished first, so this document is outdated
      newestFinished = number
      if (text !== lastText) await change(text, number)
      lastReadError = undefined
    } catch (error) {
      const code = error instanceof StoreError ? error.code : ((error as Error)?.name ?? '')
      if (number < newestFinished || code === lastReadError) return
      lastReadError = code
      log('live-unread', code, 'cannot read the live policies; the current policies stay in force')
    }
  }

  /** @throws if the parser does not load: a later read tries again */
  async function change(text: string | null, number: number) {
    let changed = fallback
    let refused: Error | undefined
    try {
      if (text !== null) changed = await compile(JSON.parse(text))
    } catch (error) {
      if (!(error instanceof ConfigError || error instanceof SyntaxError)) throw error
      refused = error
    }
    if (number < newestFinished) return // while the parser loaded, a later read finished
    lastText = text
    if (refused) {
      const why = refused.message.slice(0, MAX_MESSAGE)
      const effect = 'the live policies are invalid; the current policies stay in force'
      log('live-refused', refused.name, `${effect}: ${why}`)
      return
    }
    current = changed
    const removed = 'the live policies were removed; the deployed policies are in force'
    log('live-changed', '', text === null ? removed : 'new live policies are in force')
  }

  return (runtime) => {
    const now = clock()
    // Keep a time and not a promise: a request must not await the work of another request.
    if (!isWithin(now, lastReadAt, lastReadAt + live.everyMs)) {
      lastReadAt = now
      runtime.waitUntil(refresh(runtime))
    }
    return current
  }
}
