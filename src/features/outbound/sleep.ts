/**
 * Waits, unless a signal aborts.
 * @returns false if it aborted
 */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
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
  })
}
