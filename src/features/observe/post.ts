import { readBytes } from '../../core/base/body.ts'

/** The maximum length of an answer. */
const MAX_BYTES = 8_388_608

/** Why counts could not be sent or read. The message contains nothing from the server, no header and no URL. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  readonly code: 'bad-status' | 'bad-reply' | 'not-configured' | 'timeout' | 'unreachable'

  constructor(code: ReportError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Sends a POST request and returns the text of the answer. Does not follow redirects, because the headers contain secrets.
 * @throws {ReportError} unless the status is 2xx
 */
export async function post(
  url: string,
  { headers, body }: { headers: HeadersInit; body: string },
  timeoutMs: number,
  fetcher = fetch,
): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const options = { method: 'POST', redirect: 'manual', headers, body, signal } as const
    const response = await fetcher(url, options)
    if (!response.ok) {
      await response.body?.cancel()
      throw new ReportError('bad-status', `the server answered ${response.status}`)
    }
    const bytes = await readBytes(response.body, MAX_BYTES)
    if (!bytes) throw new ReportError('bad-reply', `the server sent more than ${MAX_BYTES} bytes`)
    return new TextDecoder().decode(bytes)
  } catch (error) {
    if (error instanceof ReportError) throw error
    throw signal.aborted
      ? new ReportError('timeout', `the server did not answer within ${timeoutMs} ms`)
      : new ReportError('unreachable', 'the connection failed')
  }
}
