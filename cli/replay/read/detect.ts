import type { LogLine } from '../line.ts'
import { createAlb } from './formats/alb.ts'
import { createCombined } from './formats/combined.ts'
import { createCsv } from './formats/csv.ts'
import { createAnyJson, createCaddy, createLogpush } from './formats/json.ts'
import { type Format, LogError } from './log.ts'
import type { CreateParser, Parser, ParserOptions } from './parser.ts'
import { Rejection } from './rejection.ts'
import { printable } from './text.ts'

/** A parser, and what the first lines say about the file. */
export interface Detected {
  parser: Parser
  /** The oldest time of the first lines. */
  first: number
  wholeSeconds: boolean
}

const creators: Record<Format, CreateParser> = {
  alb: createAlb,
  combined: createCombined,
  json: createAnyJson,
  caddy: createCaddy,
  logpush: createLogpush,
  csv: createCsv,
}

/** Formats to try. Each line of the others is also a line of one of these. */
const automatic: Format[] = ['alb', 'combined', 'json', 'csv']

/** Lines of a second format above this share make a file mixed. The rule for lines that do not parse handles fewer. */
const MIXED = 0.05

/**
 * Finds the format of a file.
 * @param lines the first lines that are not blank
 * @throws LogError
 */
export function detect(
  name: string,
  lines: string[],
  format: Format | 'auto',
  options: ParserOptions,
): Detected {
  const formats = format === 'auto' ? automatic : [format]
  const candidates = formats
    .flatMap((one) => {
      const parser = creators[one](lines, options)
      return parser ? [{ parser, results: lines.map((line) => parser.parse(line)) }] : []
    })
    .sort((a, b) => countOf(b.results) - countOf(a.results))
  const [best, other] = candidates
  if (!best || countOf(best.results) === 0) throw unknown(name, lines, format)
  if (other) rejectMixed(name, lines, best, other)
  const times = best.results.flatMap((one) => (isLine(one) ? [one.time] : []))
  return {
    parser: best.parser,
    first: times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY),
    wholeSeconds: times.every((time) => time % 1000 === 0),
  }
}

type Result = ReturnType<Parser['parse']>
interface Candidate {
  parser: Parser
  results: Result[]
}

const isLine = (result: Result): result is LogLine =>
  result !== undefined && !(result instanceof Rejection)

/** True if a line has the form of the format. */
const fits = (result: Result) => !(result instanceof Rejection && result.kind === 'unparsed')
const countOf = (results: Result[]) => results.filter(fits).length

function rejectMixed(name: string, lines: string[], best: Candidate, other: Candidate): void {
  const others = lines.flatMap((_, index) =>
    fits(other.results[index]) && !fits(best.results[index]) ? [index] : [],
  )
  if (others.length <= lines.length * MIXED) return
  throw new LogError(
    'mixed-formats',
    `${name} mixes formats: line ${best.results.findIndex(fits) + 1} is ${best.parser.title}, line ${others[0]! + 1} is ${other.parser.title}. Put each format into a file of its own.`,
  )
}

function unknown(name: string, lines: string[], format: Format | 'auto'): LogError {
  if (isBinary(lines)) {
    return new LogError('binary', `${name} is a binary file. A log is text, perhaps compressed.`)
  }
  const shown = lines.slice(0, 3).map((line) => `\n  ${printable(line)}`)
  return new LogError(
    'unknown-format',
    format === 'auto'
      ? `The format of ${name} is not known. Choose one with --format. The file begins with:${shown.join('')}`
      : `${name} does not have the format ${format}. The file begins with:${shown.join('')}`,
  )
}

/** True if more than 5 % of the characters are control characters, or bytes that are not UTF-8. */
function isBinary(lines: string[]): boolean {
  const text = lines.join('')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are what it looks for
  const strange = text.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\uFFFD]/g)?.length ?? 0
  return strange * 20 > text.length
}
