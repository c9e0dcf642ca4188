import type { LogLine } from '../line.ts'
import { type BadLine, LogError, type Progress } from './log.ts'
import type { Parser } from './parser.ts'
import { Rejection } from './rejection.ts'
import type { Source } from './source.ts'
import { LONG_LINE, LONGEST_LINE, splitLines } from './split.ts'
import { flat, printable } from './text.ts'

const KEPT = 5
/** Above this share of lines that do not parse, the figures of a replay would mislead. */
const MOST_UNPARSED = 0.05
/** The share means little before this number of lines. */
const FIRST_CHECK = 100

const TOO_LONG = new Rejection(`the line is longer than ${LONGEST_LINE / 1024} KiB`)

/** Reads the requests of a file in the order of the file. */
export async function* readRequests(
  source: Source,
  parser: Parser,
  counter: Counter,
): AsyncGenerator<LogLine[]> {
  const { progress } = counter
  const chunks = source.read((count) => {
    progress.bytes += count
  })
  let number = 0
  for await (const texts of splitLines(chunks)) {
    const list: LogLine[] = []
    const results = parser.parseList?.(texts)
    for (const [index, text] of texts.entries()) {
      number += 1
      if (text === '') continue
      const result =
        text.length > LONGEST_LINE ? TOO_LONG : results ? results[index] : parser.parse(text)
      if (result instanceof Rejection) {
        if (text.trim() !== '') counter.reject(result, source.name, number, text)
      } else if (result) list.push(text.length > LONG_LINE ? flatten(result) : result)
    }
    progress.lines += list.length
    progress.requests += list.length
    counter.check()
    yield list
  }
}

function flatten(line: LogLine): LogLine {
  line.target = flat(line.target)
  line.userAgent &&= flat(line.userAgent)
  line.referer &&= flat(line.referer)
  return line
}

/** Counts lines. */
export class Counter {
  readonly progress: Progress

  constructor(totalBytes: number | undefined) {
    this.progress = {
      lines: 0,
      requests: 0,
      withoutRequest: 0,
      firstWithoutRequest: [],
      unparsed: 0,
      firstUnparsed: [],
      late: 0,
      bytes: 0,
      totalBytes,
    }
  }

  reject({ kind, reason }: Rejection, file: string, line: number, text: string): void {
    const { progress } = this
    progress.lines += 1
    const first = kind === 'without-request' ? progress.firstWithoutRequest : progress.firstUnparsed
    if (kind === 'without-request') progress.withoutRequest += 1
    else progress.unparsed += 1
    if (first.length < KEPT) first.push({ file, line, reason, text: printable(text) })
  }

  /**
   * Stops a log whose lines mostly do not parse.
   * @throws LogError
   */
  check(least = FIRST_CHECK): void {
    const { lines, unparsed, firstUnparsed } = this.progress
    if (lines < least || unparsed <= lines * MOST_UNPARSED) return
    const share = ((unparsed / lines) * 100).toFixed(unparsed === lines ? 0 : 1)
    throw new LogError(
      'unparsed',
      `${unparsed} of ${lines} lines (${share} %) do not parse; at most ${MOST_UNPARSED * 100} % may. The first of them:${firstUnparsed.map(describe).join('')}`,
    )
  }

  /** @throws LogError if the whole log cannot be replayed */
  end(): void {
    this.check(0)
    const { requests, lines, firstWithoutRequest } = this.progress
    if (requests > 0) return
    throw new LogError(
      'empty',
      `None of the ${lines} lines is a request. The first of them:${firstWithoutRequest.map(describe).join('')}`,
    )
  }
}

const describe = ({ file, line, reason, text }: BadLine) =>
  `\n  ${file}, line ${line}: ${reason}\n    ${text}`
