import { readBytes } from './body.ts'

/** The downloaded text, or an error code with a message for the log. The message contains nothing from the server, no header and no URL. */
export type Download =
  | { text: string }
  | { code: 'bad-status' | 'too-large' | 'timeout' | 'unreachable'; message: string }

/**
 * Downloads a text of at most `maxBytes`, measured after decompression. Follows no redirect: only the server in the configuration is
 * trusted, and header fields may be secrets. Never throws.
 * @param only the only status of an answer. Defaults to any 2xx
 */
export async function download(
  url: string,
  init: RequestInit,
  { maxBytes, timeoutMs, only }: { maxBytes: number; timeoutMs: number; only?: number },
  fetcher = fetch,
): Promise<Download> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetcher(url, { ...init, redirect: 'manual', signal })
    const { ok, status } = response
    if (!ok || (only !== undefined && status !== only)) {
      await response.body?.cancel()
      return { code: 'bad-status', message: `the server answered ${status}` }
    }
    const bytes = await readBytes(response.body, maxBytes)
    return bytes
      ? { text: new TextDecoder().decode(bytes) }
      : { code: 'too-large', message: `the server sent more than ${maxBytes} bytes` }
  } catch {
    return signal.aborted
      ? { code: 'timeout', message: `the server did not answer within ${timeoutMs} ms` }
      : { code: 'unreachable', message: 'the connection failed' }
  }
}
