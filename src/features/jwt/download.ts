import { readBytes } from '../../core/base/body.ts'

/** The downloaded text, or an error code with a message for the log. The message contains nothing from the server. */
export type Download = { text: string } | { code: string; message: string }

/**
 * Downloads a text of at most `maxBytes`, measured after decompression. Does not follow redirects, because only the server in the
 * configuration is trusted. Never throws.
 */
export async function download(
  url: string,
  { maxBytes, timeoutMs }: { maxBytes: number; timeoutMs: number },
): Promise<Download> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const headers = { accept: 'application/json' }
    const response = await fetch(url, { headers, redirect: 'manual', signal })
    if (response.status !== 200) {
      await response.body?.cancel()
      return { code: 'bad-status', message: `the server answered ${response.status}` }
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
