/** Reads usage in the bytes of a JSON response or of server-sent events. The bytes are those on the wire, so they may be compressed. */
import { createParser } from 'eventsource-parser'
import { parsedJson } from '../../core/base/json.ts'
import type { Usage } from './usage.ts'

/** Reads the bytes of a body. Reads nothing more after an error or above its bound. */
export interface Reader {
  /** A promise if the bytes are compressed. Never throws or rejects. */
  feed(bytes: Uint8Array): void | Promise<void>
  end(): void | Promise<void>
}

const LF = 10
const CR = 13

/** Finds the ends of server-sent events in the bytes of a stream: an event ends with an empty line. */
export class EventEnds {
  #lineIsEmpty = true
  #afterCr = false

  /** The position after each end of an event in the next bytes of the stream. */
  endsIn(bytes: Uint8Array): number[] {
    const ends: number[] = []
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index]
      const isSecondOfTwo = byte === LF && this.#afterCr // CR LF ends one line
      this.#afterCr = byte === CR
      if (isSecondOfTwo) continue
      const endsLine = byte === LF || byte === CR
      if (endsLine && this.#lineIsEmpty) {
        ends.push(byte === CR && bytes[index + 1] === LF ? index + 2 : index + 1)
      }
      this.#lineIsEmpty = endsLine
    }
    return ends
  }
}

/** Makes the reader for a type of content. Returns `undefined` for a type without usage. */
export function readerFor(contentType: string, usages: Usage[], maxBytes: number) {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'text/event-stream') return { reader: eventReader(usages, maxBytes), isStream: true }
  return /^application\/(.+\+)?json$/.test(type)
    ? { reader: jsonReader(usages, maxBytes), isStream: false }
    : undefined
}

/** The last events of OpenAI and Anthropic, which have no content. */
const LAST = /^\[DONE\]$|"type":\s*"message_stop"/

function eventReader(usages: Usage[], maxBufferSize: number): Reader {
  let text = new TextDecoder()
  /** Finds the end of an event that is too long. It counts, and its data is not read. */
  let skipped: EventEnds | undefined
  const count = (event: unknown) => {
    for (const usage of usages) usage.count(event)
  }
  const parser = createParser({
    maxBufferSize,
    onEvent({ data }) {
      if (data === '' || LAST.test(data)) return
      count(usages.some((usage) => usage.mayBeIn(data)) ? parsedJson(data) : undefined)
    },
    onError({ type }) {
      if (type !== 'max-buffer-size-exceeded') return
      skipped = new EventEnds()
      count(undefined)
    },
  })
  return {
    feed(bytes) {
      const start = skipped ? skipped.endsIn(bytes)[0] : 0
      if (start === undefined) return
      if (skipped) {
        parser.reset()
        text = new TextDecoder() // the old one may hold a part of a character of the skipped event
        skipped = undefined
      }
      parser.feed(text.decode(bytes.subarray(start), { stream: true }))
    },
    end() {
      if (!skipped) parser.feed('\n\n') // an origin may leave out the empty line after its last event
    },
  }
}

function jsonReader(usages: Usage[], maxBytes: number): Reader {
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  return {
    feed(bytes) {
      size += bytes.length
      text = size > maxBytes ? '' : text + decoder.decode(bytes, { stream: true })
    },
    end() {
      if (text === '' || size > maxBytes) return
      const value = parsedJson(text + decoder.decode())
      for (const usage of usages) usage.read(value)
    },
  }
}

/** Decompresses gzip and deflate, unless a runtime has decoded the body already. Brotli and Zstandard are not readable. */
export function decompressing(reader: Reader, encoding: string): Reader {
  let chosen: Reader | undefined
  return {
    feed(bytes) {
      if (bytes.length === 0) return
      const format = chosen ? undefined : formatOf(bytes[0]!, encoding)
      chosen ??= format ? decoderFor(format, reader) : reader
      return chosen.feed(bytes)
    },
    end: () => (chosen ?? reader).end(),
  }
}

/** The compression of a body, by its first byte. No JSON and no event stream begins with one of these. */
const formatOf = (first: number, encoding: string): CompressionFormat | undefined =>
  first === 0x1f ? 'gzip' : encoding === 'deflate' && (first & 15) === 8 ? 'deflate' : undefined

function decoderFor(format: CompressionFormat, reader: Reader): Reader {
  const { readable, writable } = new DecompressionStream(format)
  const writer = writable.getWriter()
  const reading = (async () => {
    for await (const bytes of readable) await reader.feed(bytes)
  })().catch(() => {}) // invalid or incomplete: what has been read counts
  return {
    feed: (bytes) => writer.write(bytes as BufferSource).catch(() => {}),
    async end() {
      await writer.close().catch(() => {})
      await reading
      await reader.end()
    },
  }
}
