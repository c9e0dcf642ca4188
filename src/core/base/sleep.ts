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
