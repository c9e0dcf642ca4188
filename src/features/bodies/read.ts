/** Reads the JSON body of a request. The request itself stays readable. */
import { joined } from '../../core/base/body.ts'
import { jsonFlaw } from '../../core/base/json-flaw.ts'
import { bodySources } from '../../core/request/body-sources.ts'
import { BodyInFlight } from './in-flight.ts'
import { MAX_LEVELS } from './json.ts'

export interface ReadOptions {
  maxBytes: number
  timeoutMs: number
}

/** The value of a body, or why it cannot be read. Undefined if the request has no body. */
export type Content = { value: unknown } | NoContent | undefined

interface NoContent {
  unreadable: string
  /** The number of items of a batch that other servers may run. Absent if it is not known. */
  items?: number
}

export async function readBody(request: Request, options: ReadOptions): Promise<Content> {
  const { headers } = request
  const source = bodySources.get(request)
  const length = headers.get('content-length')
  if (length === '0' || (!source && request.body === null)) return undefined
  if (!isJson(headers.get('content-type') ?? '')) return { unreadable: 'its type is not JSON' }
  const given = source?.()
  if (given && 'parsed' in given) return { value: given.parsed }
  if (given && 'unreadable' in given) return given
  const encoding = headers.get('content-encoding')
  if (encoding && !/^identity$/i.test(encoding))
    return { unreadable: `it is encoded (${encoding})` }
  if (Number(length) > options.maxBytes) return tooLarge(options.maxBytes)
  if (!given && request.bodyUsed) return { unreadable: 'it was read before' }
  const body = BodyInFlight.begin(options.timeoutMs)
  if (!body) return NO_ROOM
  try {
    const stream = given?.stream ?? request.clone().body!
    const text = await textOf(stream.getReader(), body, options)
    if (typeof text !== 'string') return text
    if (text === '') return undefined
    const value: unknown = JSON.parse(text)
    const flaw = jsonFlaw(text, MAX_LEVELS)
    if (!flaw) return { value }
    return { unreadable: `it has ${flaw}`, ...(Array.isArray(value) && { items: value.length }) }
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'it is not UTF-8, or it ended early'
    return { unreadable: why }
  } finally {
    body.end()
  }
}

const NO_ROOM = { unreadable: 'other bodies use the memory for it' }

const tooLarge = (maxBytes: number) => ({ unreadable: `it is larger than ${maxBytes} bytes` })

/** JSON is UTF-8 (RFC 8259, 8.1). Some servers use another `charset` if it is set. */
function isJson(contentType: string): boolean {
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  return (
    /^application\/([\w.!#$&^-]+\+)?json$/.test(type!) &&
    parameters.every((one) => !one.includes('charset') || /^charset="?utf-8"?$/.test(one))
  )
}

/** @throws {TypeError} if the bytes are not UTF-8, or the stream fails */
async function textOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  body: BodyInFlight,
  { maxBytes, timeoutMs }: ReadOptions,
): Promise<string | { unreadable: string }> {
  const chunks: Uint8Array[] = []
  let ended: { unreadable: string } | undefined
  const end = (why: { unreadable: string }) => {
    ended = why
    reader.cancel().catch(() => {})
  }
  const late = { unreadable: `it did not arrive within ${timeoutMs} ms` }
  const timer = setTimeout(end, timeoutMs, late)
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (ended) return ended
      if (done)
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(joined(chunks))
      chunks.push(value)
      if (!body.add(value.length)) end(NO_ROOM)
      else if (body.size > maxBytes) end(tooLarge(maxBytes))
    }
  } finally {
    clearTimeout(timer)
  }
}
