/**
 * Waits, unless a signal aborts, or a promise resolves.
 * @returns false if it did
 */
export function sleep(
  ms: number,
  signal: AbortSignal | undefined,
  closed?: Promise<unknown>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const aborted = () => {
      clearTimeout(timer)
      resolve(false)
    }
    // A timer may fire up to one ms early.
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', aborted)
      resolve(true)
    }, ms + 1)
    signal?.addEventListener('abort', aborted, { once: true })
    if (signal?.aborted) aborted()
    void closed?.then(aborted)
  })
}

/** Makes a call with a signal that aborts after `ms`. The timer of `AbortSignal.timeout` outlives the call, which costs Node more than the call. */
export async function withTimeout<T>(
  ms: number,
  call: (signal: AbortSignal, abort: () => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, ms)
  try {
    return await call(controller.signal, abort)
  } finally {
    clearTimeout(timer)
  }
}
