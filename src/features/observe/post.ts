import { download } from '../../core/base/download.ts'

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

/** Returns the text of the answer. @throws {ReportError} unless the status is 2xx */
export async function post(
  url: string,
  sent: { headers: HeadersInit; body: string },
  timeoutMs: number,
  fetcher = fetch,
): Promise<string> {
  const bounds = { maxBytes: MAX_BYTES, timeoutMs }
  const answer = await download(url, { method: 'POST', ...sent }, bounds, fetcher)
  if ('text' in answer) return answer.text
  const { code, message } = answer
  throw new ReportError(code === 'too-large' ? 'bad-reply' : code, message)
}
