import { flat } from './text.ts'

/** The longest line, in characters, that can be a request. */
export const LONGEST_LINE = 65_536

/** Longer lines, in characters, are copied, because their parts would keep much text in memory. */
export const LONG_LINE = 512

/** So many bytes are more than `LONGEST_LINE` characters of UTF-8. */
const LONGEST_BYTES = LONGEST_LINE * 3 + 1
const LINE_FEED = 10
const RETURN = 13
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Splits bytes into lists of lines. Of a line that is too long, only the beginning is kept. A line is a part of the text of its list, and
 * keeps that in memory, unless it is long.
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = true
  for await (const chunk of chunks) {
    const last = chunk.lastIndexOf(LINE_FEED)
    if (last >= 0) {
      // The first line began in the chunks before.
      const first = chunk.indexOf(LINE_FEED)
      const lines = linesOf(joined(rest, chunk.subarray(0, first)))
      if (last > first)
        for (const line of linesOf(chunk.subarray(first + 1, last))) lines.push(line)
      if (isFirst) lines[0] = withoutMark(lines[0]!)
      isFirst = false
      yield lines
      rest = Buffer.alloc(0)
    }
    rest = joined(rest, chunk.subarray(last + 1))
  }
  if (rest.length === 0) return
  const [line = ''] = linesOf(rest)
  yield [isFirst ? withoutMark(line) : line]
}

/** The lines of some bytes, which do not end with a line feed. */
function linesOf(bytes: Buffer): string[] {
  const text = bytes.toString('utf8', 0, bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length)
  const lines = text.split(bytes.includes(RETURN) ? /\r?\n/ : '\n')
  return text.length > lines.length * LONG_LINE ? lines.map(flat) : lines
}

/** The beginning of a line, copied, because the rest of a chunk would stay in memory with it. */
const joined = (start: Buffer, end: Buffer) =>
  start.length >= LONGEST_BYTES
    ? start
    : Buffer.concat([start, end.subarray(0, LONGEST_BYTES - start.length)])

const withoutMark = (line: string) => (line.startsWith(BYTE_ORDER_MARK) ? line.slice(1) : line)
