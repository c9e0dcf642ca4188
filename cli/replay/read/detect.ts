import type { LogLine } from '../line.ts'
import { createCombined } from './formats/combined.ts'
import { createCsv } from './formats/csv.ts'
import { createAnyJson, createCaddy, createLogpush } from './formats/json.ts'
import { createPattern, explainMismatch } from './formats/pattern.ts'
import { patterns } from './formats/patterns.ts'
import { createW3c } from './formats/w3c.ts'
import { type Format, formats, LogError } from './log.ts'
import type { CreateParser, Parser, ParserOptions } from './parser.ts'
import { Rejection } from './rejection.ts'
import { printable } from './text.ts'
import { type Unwrapped, unwrapped } from './unwrap.ts'

/** A parser, and what the first lines say about the file. */
export interface Detected {
  parser: Parser
  /** The requests of the first lines. */
  requests: LogLine[]
  /** The oldest time of the first lines. */
  first: number
  wholeSeconds: boolean
}

const creators = {
  combined: createCombined,
  json: createAnyJson,
  caddy: createCaddy,
  logpush: createLogpush,
  w3c: createW3c,
  csv: createCsv,
  ...Object.fromEntries(
    Object.entries(patterns).map(([name, [title, text, raw]]) => [
      name,
      createPattern(title, text, raw),
    ]),
  ),
} as Record<Format, CreateParser>

/** Formats to try, the better ones of equals first. Each line of the others is also JSON. */
const automatic = formats.filter((one) => one !== 'caddy' && one !== 'logpush')

/** Lines of a second format above this share make a file mixed. The rule for lines that do not parse handles fewer. */
const MIXED = 0.05

/** How to read the lines: a format, or the pattern of `--pattern`. */
export type How = Format | 'auto' | { pattern: string }

/**
 * Finds the format of a file, and what collectors have written around its lines.
 * @param lines the first lines that are not blank
 * @throws LogError
 */
export function detect(name: string, lines: string[], how: How, options: ParserOptions): Detected {
  const tried =
    typeof how === 'object' ? [createPattern('--pattern', how.pattern)] : creatorsOf(how)
  let best: Candidate | undefined
  let others: Candidate[] = []
  let problem: unknown
  for (const level of unwrapped(lines)) {
    if (level.isInJson) problem = undefined // the fields around the line need not have the parts of requests
    const candidates = tried
      .flatMap((create) => {
        try {
          const parser = create(level.lines, options)
          return parser ? [candidateOf(parser, create, level)] : []
        } catch (error) {
          // Of lines that have several formats by chance, one explains what it lacks.
          if (how !== 'auto' || !isPattern.has(create)) problem ??= error
          return []
        }
      })
      .sort((a, b) => b.count - a.count)
    const [first] = candidates
    // The wrappings may be a part of the format, but an outer one is more often none. JSON around a line has the fields itself.
    const least = (best?.count ?? 0) + (level.isInJson ? 1 : 0)
    if (!first || first.count < least) continue
    best = first
    others = candidates.slice(1)
  }
  if (!best || best.count === 0) throw problem ?? unknown(name, lines, how)
  if (others[0]) rejectMixed(name, best, others[0])
  const requests = best.results.filter(isLine)
  return {
    // A new one, because a parser may remember the lines before.
    parser: unwrapping(best.create(best.level.lines, options)!, best.level),
    requests,
    first: requests.reduce((least, { time }) => Math.min(least, time), Number.POSITIVE_INFINITY),
    wholeSeconds: requests.every(({ time }) => time % 1000 === 0),
  }
}

const creatorsOf = (format: Format | 'auto') =>
  (format === 'auto' ? automatic : [format]).map((one) => creators[one])
const isPattern = new Set(Object.keys(patterns).map((name) => creators[name as Format]))

type Result = ReturnType<Parser['parse']>
interface Candidate {
  title: string
  create: CreateParser
  level: Unwrapped
  results: Result[]
  /** The lines that have the form of the format. */
  count: number
}

function candidateOf(parser: Parser, create: CreateParser, level: Unwrapped): Candidate {
  const results = level.lines.map((line) => parser.parse(line))
  return { title: parser.title, create, level, results, count: results.filter(fits).length }
}

const unwrapping = ({ parse, parseList, ...parser }: Parser, { unwrap }: Unwrapped): Parser => ({
  ...parser,
  parse(line) {
    const text = unwrap(line)
    return text === '' ? undefined : parse(text)
  },
  ...(parseList && { parseList: (list) => parseList(list.map(unwrap)) }),
})

const isLine = (result: Result): result is LogLine =>
  result !== undefined && !(result instanceof Rejection)

/** True if a line has the form of the format. */
const fits = (result: Result) => !(result instanceof Rejection && result.kind === 'unparsed')

function rejectMixed(name: string, best: Candidate, other: Candidate): void {
  const others = best.results.flatMap((result, index) =>
    fits(other.results[index]) && !fits(result) ? [index] : [],
  )
  if (others.length <= best.results.length * MIXED) return
  throw new LogError(
    'mixed-formats',
    `${name} mixes formats: line ${best.results.findIndex(fits) + 1} is ${best.title}, line ${others[0]! + 1} is ${other.title}. Put each format into a file of its own.`,
  )
}

function unknown(name: string, lines: string[], how: How): LogError {
  if (isBinary(lines)) {
    return new LogError('binary', `${name} is a binary file. A log is text, perhaps compressed.`)
  }
  const shown = lines.slice(0, 3).map((line) => `\n  ${printable(line)}`)
  const begins = `The file begins with:${shown.join('')}`
  if (typeof how === 'object') {
    const levels = [...unwrapped(lines)].map(({ lines }) => lines[0]!)
    return new LogError(
      'pattern',
      `--pattern: no line of ${name} has it. ${explainMismatch(how.pattern, levels)} ${begins}`,
    )
  }
  return new LogError(
    'unknown-format',
    how === 'auto'
      ? `The format of ${name} is not known. Describe its lines with --pattern, such as '$remote_addr [$time_local] "$request" $status', or choose one with --format. ${begins}`
      : `${name} does not have the format ${how}. ${begins}`,
  )
}

/** True if more than 5 % of the characters are control characters, or bytes that are not UTF-8. */
function isBinary(lines: string[]): boolean {
  const text = lines.join('')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are what it looks for
  const strange = text.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\uFFFD]/g)?.length ?? 0
  return strange * 20 > text.length
}
