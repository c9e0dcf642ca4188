import { readBytes } from '../base/body.ts'

/** What a server sent, or why not: a code and words for the log, which hold nothing of what it said. */
export type Download = { text: string } | { code: string; message: string }

/**
 * Fetches a text of at most so many bytes (as they are after decompression). Follows no redirect: the server that a
 * configuration names is the one that is believed. Never throws.
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
