import { LogError } from '../log.ts'
import type { CreateParser, Fields } from '../parser.ts'
import { createRecordReader, type RecordReader } from '../records.ts'
import { Rejection } from '../rejection.ts'
import { w3cRemedy } from '../remedies.ts'
import { tokens } from './tokens.ts'

const FIELDS = /^#Fields:\s*/i
const DATE = /^#Date:\s*(\d{4}-\d\d-\d\d)/i
const NO_FIELDS = new Rejection('there is no #Fields before the line')
const UNCLOSED = new Rejection('a field in quotes is not closed')

/** The names of the fields from a line on. */
interface Section {
  names: string[]
  reader?: RecordReader
}

/**
 * The Extended Log File Format of IIS, CloudFront and others (https://www.w3.org/TR/WD-logfile.html): `#Fields` names the fields of the lines
 * that follow, and may change in the file. Spaces or tabs are between them.
 */
export const createW3c: CreateParser = (lines, options) => {
  if (!lines.some((line) => FIELDS.test(line))) return undefined
  const sections = new Map<string, Section>()
  let section: Section | undefined
  let date: string | undefined

  function direct(line: string): void {
    date = DATE.exec(line)?.[1] ?? date
    if (!FIELDS.test(line)) return
    const names = line.replace(FIELDS, '').trim().split(/\s+/)
    const key = names.join(' ')
    section = sections.get(key) ?? { names }
    sections.set(key, section)
  }

  function toFields(line: string, names: string[]): Fields | Rejection {
    const values = line.includes('\t')
      ? line.split('\t')
      : line.includes('"')
        ? tokens(line)
        : line.trimEnd().split(' ')
    if (!values) return UNCLOSED
    if (values.length !== names.length) {
      return new Rejection(`the line has ${values.length} fields, but #Fields has ${names.length}`)
    }
    const fields: Fields = date === undefined ? {} : { date }
    for (let index = 0; index < names.length; index += 1) fields[names[index]!] = values[index]
    return fields
  }

  function parse(line: string) {
    if (line.startsWith('#')) {
      direct(line)
      return undefined
    }
    if (!section) return NO_FIELDS
    const fields = toFields(line, section.names)
    if (fields instanceof Rejection) return fields
    section.reader ??= createRecordReader([fields], options, { byName: true })
    return section.reader.read(fields)
  }

  for (const line of lines) parse(line)
  const readers = [...sections.values()].flatMap(({ reader }) => reader ?? [])
  if (readers.length === 0) {
    throw new LogError('empty', 'The log has #Fields, but no line with values.')
  }
  // The file is read from its beginning.
  section = undefined
  date = undefined
  const { read: _, ...known } = readers[0]!
  return { title: 'W3C Extended Log File Format', remedyOf: w3cRemedy, ...known, parse }
}
