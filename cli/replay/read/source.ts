import { createReadStream } from 'node:fs'
import { pipeline, type Readable, type Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { asLogError, type LogFile } from './files.ts'
import { LogError } from './log.ts'

/** The bytes of a log, decompressed. */
export interface Source {
  name: string
  /** The size before decompression. Absent for stdin. */
  size?: number
  /** The first bytes, without an effect on `read`. */
  peek(): AsyncIterable<Buffer>
  /**
   * All bytes.
   * @param onBytes is called with the number of bytes before decompression, as they are read
   */
  read(onBytes: (count: number) => void): AsyncIterable<Buffer>
}

const CHUNK = 256 * 1024

/** A file is opened twice, so that a log of many files does not keep all of them open. A pipe is opened once. */
export const fileSource = ({ path, size }: LogFile): Source => {
  if (size === undefined) return streamSource(createReadStream(path), path)
  const open = (onBytes: (count: number) => void) =>
    decompressed(path, createReadStream(path, { highWaterMark: CHUNK }), onBytes)
  return { name: path, size, peek: () => open(() => {}), read: open }
}

/** Keeps the bytes that `peek` read for `read`. */
export function streamSource(stream: Readable, name = 'stdin'): Source {
  let count = (_bytes: number) => {}
  let early = 0
  const bytes = decompressed(name, stream, (length) => {
    early += length
    count(length)
  })
  const peeked: Buffer[] = []
  return {
    name,
    async *peek() {
      for (;;) {
        const { value, done } = await bytes.next()
        if (done) return
        peeked.push(value)
        yield value
      }
    },
    async *read(onBytes) {
      onBytes(early)
      count = onBytes
      while (peeked.length > 0) yield peeked.shift()!
      yield* bytes
    },
  }
}

/** Recognizes compressed data by its first bytes, because the names of rotated logs vary. */
async function* decompressed(
  name: string,
  stream: Readable,
  onBytes: (count: number) => void,
): AsyncGenerator<Buffer> {
  try {
    const chunks = counted(stream, onBytes)
    let head: Buffer = Buffer.alloc(0)
    while (head.length < MAGIC_BYTES) {
      const { value, done } = await chunks.next()
      if (done) break
      head = Buffer.concat([head, value])
    }
    let given = 0
    let hasEnded = false
    const all = async function* () {
      if (head.length > 0) yield head
      given = head.length
      for await (const chunk of chunks) {
        given += chunk.length
        yield chunk
      }
      hasEnded = true
    }
    const decoder = decoderOf(name, head)
    if (!decoder) return yield* all()
    yield* pipeline(all, decoder, () => {}) as AsyncIterable<Buffer>
    // Node ends after the first frame of zstd.
    if (!hasEnded || decoder.bytesWritten < given) {
      throw new LogError(
        'compression',
        `${name} has several frames of zstd, of which Node reads only the first. Decompress it: zstdcat ${name} | npx sluice replay -`,
      )
    }
  } catch (error) {
    throw asLogError(name, error)
  } finally {
    stream.destroy()
  }
}

async function* counted(stream: Readable, onBytes: (count: number) => void) {
  for await (const chunk of stream) {
    onBytes(chunk.length)
    yield chunk as Buffer
  }
}

const MAGIC_BYTES = 6
const unreadable: Record<string, [format: string, command: string]> = {
  '425a68': ['bzip2', 'bzcat'],
  fd377a585a00: ['xz', 'xzcat'],
  '504b0304': ['zip', 'unzip -p'],
}

/** The decoder of compressed data, or `undefined` if the data is not compressed. */
function decoderOf(name: string, head: Buffer): (Transform & zlib.Zlib) | undefined {
  const magic = head.toString('hex', 0, MAGIC_BYTES)
  if (magic.startsWith('1f8b')) return zlib.createGunzip({ chunkSize: CHUNK })
  if (magic.startsWith('28b52ffd')) {
    if ('createZstdDecompress' in zlib) return zlib.createZstdDecompress({ chunkSize: CHUNK })
    throw cannotDecompress(name, 'zstd', 'zstdcat')
  }
  for (const [start, [format, command]] of Object.entries(unreadable)) {
    if (magic.startsWith(start)) throw cannotDecompress(name, format, command)
  }
  return undefined
}

const cannotDecompress = (name: string, format: string, command: string) =>
  new LogError(
    'compression',
    `${name} is compressed with ${format}, which Node ${process.versions.node} cannot read. Decompress it: ${command} ${name} | npx sluice replay -`,
  )
