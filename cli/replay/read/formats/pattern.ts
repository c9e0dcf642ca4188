/** Lines that a pattern describes, as `log_format` of nginx does: text with the names of fields, such as `$remote_addr - [$time_local]`. */
import { LogError } from '../log.ts'
import type { CreateParser, Fields } from '../parser.ts'
import { createRecordReader } from '../records.ts'
import { Rejection } from '../rejection.ts'
import { mapRemedy } from '../remedies.ts'
import { unescapeField } from '../request.ts'
import { printable } from '../text.ts'
import { readAddress } from '../values.ts'
import { closingQuote } from './tokens.ts'

export interface Pattern {
  /** Returns the fields of a line, or what it lacks. */
  read(line: string): Fields | Mismatch
}

/** Where a line departs from a pattern. */
export class Mismatch extends Rejection {
  /** The characters of the line from there on. */
  readonly left: number
  constructor(reason: string, left: number) {
    super(reason)
    this.left = left
  }
}

const FIELD = /\$(?:\{(\w+)\}|(\w+))/
/** A name for any number of fields that are not needed. */
const UNUSED = '_'

/**
 * Compiles a pattern. A field reaches to the first place at which the text behind it is found; in quotes, to the quote that is not escaped;
 * before a single `:`, to the last one of the word, because addresses contain colons. Outside of quotes it does not begin with one. A space
 * behind it stands for several. What follows the pattern in a line is ignored.
 * @throws LogError
 */
export function compilePattern(pattern: string): Pattern {
  const parts = pattern.replaceAll('\\t', '\t').split(FIELD)
  const literals = parts.filter((_, index) => index % 3 === 0) as string[]
  const names = parts.flatMap((_, index) =>
    index % 3 === 1 ? [parts[index] ?? parts[index + 1]!] : [],
  )
  check(pattern, names, literals)
  const [start = '', ...ends] = literals
  const read = (line: string): Fields | Mismatch => {
    if (!line.startsWith(start)) {
      return new Mismatch(`expects ${JSON.stringify(start)} at the beginning`, line.length)
    }
    const fields: Fields = {}
    let at = start.length
    for (let index = 0; index < names.length; index += 1) {
      const [before, name, after] = [literals[index]!, names[index]!, ends[index]!]
      const end = endOf(line, at, before, after)
      if (end < 0 || !line.startsWith(after, end)) {
        const place = `after $${name}, from character ${at + 1}`
        return new Mismatch(`expects ${JSON.stringify(after)} ${place}`, line.length - at)
      }
      const text = before.endsWith('"') ? line.slice(at, end) : line.slice(at, end).trimEnd()
      if (name !== UNUSED) fields[name] = text.includes('\\') ? unescapeField(text) : text
      at = end + after.length
      if (after.endsWith(' ')) while (line[at] === ' ') at += 1
    }
    return fields
  }
  return { read }
}

function endOf(line: string, from: number, before: string, after: string): number {
  const isQuoted = before.endsWith('"')
  if (!isQuoted && line.startsWith('"', from)) return -1
  if (after === '') return line.length
  if (isQuoted && after.startsWith('"')) return closingQuote(line, from)
  if (after !== ':') return line.indexOf(after, from)
  const word = line.indexOf(' ', from)
  const end = line.lastIndexOf(':', word < 0 ? line.length : word)
  return end < from ? -1 : end
}

function check(pattern: string, names: string[], literals: string[]): void {
  const fail = (reason: string) => new LogError('pattern', `--pattern: ${reason}`)
  if (names.length === 0) {
    throw fail(
      `${printable(pattern)} names no field. Write the format of nginx, such as '$remote_addr - $remote_user [$time_local] "$request" $status'.`,
    )
  }
  const joined = names.findIndex((_, index) => index > 0 && literals[index] === '')
  if (joined > 0) {
    const [one, other] = [names[joined - 1], names[joined]]
    throw fail(
      `$${one} and $${other} have nothing between them, so that no place ends $${one}. Write the text between them, or one field for both.`,
    )
  }
  const twice = names.find((name, index) => name !== UNUSED && names.indexOf(name) < index)
  if (twice) {
    throw fail(`$${twice} is there twice. Write $_ for a field that is not needed.`)
  }
}

/** Why no form of a line has a pattern, by the form with the most of it. The last forms are without what collectors have added. */
export function explainMismatch(pattern: string, forms: string[]): string {
  const { read } = compilePattern(pattern)
  const misses = forms.map(read).filter((one) => one instanceof Mismatch)
  const [most] = misses.reverse().sort((a, b) => a.left - b.left)
  return most ? `The pattern ${most.reason} of the first line.` : ''
}

const addressIn = (line: string) => line.split(/[\s"|;]+/).find((word) => readAddress(word))

const MORE_QUOTES =
  'it has more quotes than other lines. This server does not escape those of a client, so its fields are not certain'

const quotesIn = (line: string) => line.split('"').length

/**
 * The parser of lines with a pattern.
 * @param raw set if the server does not escape quotes. A client may have written those that a line has beyond the others, and moved its fields
 */
export const createPattern = (title: string, text: string, raw?: 'raw'): CreateParser => {
  const pattern = compilePattern(text)
  return (lines, options) => {
    let quotes = Number.POSITIVE_INFINITY
    const samples = lines.flatMap((line) => {
      const fields = pattern.read(line)
      if (fields instanceof Rejection) return []
      if (raw) quotes = Math.min(quotes, quotesIn(line))
      return [fields]
    })
    if (samples.length === 0) return undefined
    const { read, ...known } = createRecordReader(samples, options)
    const isRead = known.facts.has('ip') || known.addressMayBe !== undefined
    const word = isRead ? undefined : addressIn(lines[0]!)
    return {
      title,
      remedyOf: mapRemedy,
      ...known,
      ...(word && {
        addressMayBe: `${printable(word)} in the line: write $remote_addr for it in --pattern`,
      }),
      parse: (line) => {
        const fields = pattern.read(line)
        if (fields instanceof Rejection) return fields
        if (quotesIn(line) > quotes) return new Rejection(MORE_QUOTES)
        return read(fields)
      },
    }
  }
}
