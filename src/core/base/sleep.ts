/**
 * Waits, unless a signal aborts, or a promise resolves.
 * @returns false if it did
 */
export function sleep(ms: number, signal: AbortSignal | undefined, closed?: Promise<unknown>) {
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

/** Settles as a promise does. After `ms` it rejects with an error. */
export function inTime<T>(promise: Promise<T> | T, ms: number, late: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}

export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
