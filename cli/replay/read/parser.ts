import type { Fact, LogLine } from '../line.ts'
import type { Rejection } from './rejection.ts'
import type { RemedyOf } from './remedies.ts'

/** Parses the lines of one file. */
export interface Parser {
  /** The format, for people. */
  title: string
  facts: ReadonlySet<Fact>
  /** How to make the log tell a fact. */
  remedyOf: RemedyOf
  /** The field of `X-Forwarded-For` whose last entry is the address, if it is none of one address. */
  chain?: string | undefined
  /** If the log has no address that the reader knows of: what may be one, and how to name it. A clause. */
  addressMayBe?: string | undefined
  /** Returns `undefined` for a line that is not part of the log, such as the names of columns. */
  parse(text: string): LogLine | Rejection | undefined
  /** The same for many lines, if it is faster. */
  parseList?(texts: string[]): (LogLine | Rejection | undefined)[]
}

export interface ParserOptions {
  /** Fields of the log by properties, from `--map`. The aliases of properties are resolved. */
  map: ReadonlyMap<Property, string>
  host: string | undefined
}

/**
 * Creates a parser for a file that begins with these lines. Returns `undefined` if the lines cannot have the format.
 * @throws LogError if the mapping does not fit
 */
export type CreateParser = (lines: string[], options: ParserOptions) => Parser | undefined

/** A line as fields with names: an object of JSON or a row of CSV. */
export type Fields = Record<string, unknown>

/** The properties that a field of a log can be mapped to. */
export const properties = [
  'time',
  'ip',
  'request',
  'method',
  'target',
  'query',
  'host',
  'status',
  'userAgent',
  'referer',
  'country',
  'asn',
  'colo',
] as const
export type Property = (typeof properties)[number] | `header:${string}`

/** The facts that a mapped property adds. */
export function factsOf(property: Property): Fact[] {
  if (property === 'userAgent') return ['header:user-agent']
  if (property === 'referer') return ['header:referer']
  if (property === 'request') return ['query']
  if (property === 'time' || property === 'method' || property === 'target') return []
  return [property]
}
