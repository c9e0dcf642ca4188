import { parse as parseCsv } from 'csv-parse/sync'
import { LogError } from '../log.ts'
import type { CreateParser, Fields } from '../parser.ts'
import { createRecordReader } from '../records.ts'
import { Rejection } from '../rejection.ts'
import { mapRemedy } from '../remedies.ts'

const DELIMITERS = [',', '\t', ';']

/** Comma- or tab-separated values. The first line has the names of the columns. */
export const createCsv: CreateParser = ([header = '', ...lines], options) => {
  const delimiter = DELIMITERS.reduce((best, one) =>
    header.split(one).length > header.split(best).length ? one : best,
  )
  const columns = readRow(header, delimiter)
  if (!columns || columns.length < 2 || !columns.every((name) => NAME.test(name))) return undefined
  const rows = lines.flatMap((line) => {
    const fields = toFields(readRow(line, delimiter), columns)
    return fields instanceof Rejection ? [] : [fields]
  })
  if (rows.length === 0) return undefined
  for (const [property, name] of options.map) {
    if (columns.includes(name)) continue
    throw new LogError(
      'map',
      `--map ${property}=${name}: there is no column ${name}. The columns are ${columns.join(', ')}.`,
    )
  }
  const { read, ...known } = createRecordReader(rows, options)
  const toLine = (line: string, row: string[] | undefined) => {
    if (line === header) return undefined
    const fields = toFields(row, columns)
    return fields instanceof Rejection ? fields : read(fields)
  }
  return {
    title: delimiter === '\t' ? 'TSV' : 'CSV',
    remedyOf: mapRemedy,
    ...known,
    parse: (line) => toLine(line, readRow(line, delimiter)),
    parseList(lines) {
      const rows = readRows(lines, delimiter)
      return lines.map((line, index) => toLine(line, rows[index]))
    },
  }
}

const NAME = /^[A-Za-z_@][\w .()@-]*$/
const MALFORMED = new Rejection('a field in quotes is malformed')

function toFields(row: string[] | undefined, columns: string[]): Fields | Rejection {
  if (!row) return MALFORMED
  if (row.length !== columns.length) {
    return new Rejection(
      `the line has ${row.length} fields, but there are ${columns.length} columns`,
    )
  }
  const fields: Fields = {}
  for (let index = 0; index < columns.length; index += 1) fields[columns[index]!] = row[index]
  return fields
}

/**
 * Splits lines. Access logs have no line breaks in fields, so that a damaged line must not affect others: if there is one, each line is
 * split alone, which takes much longer.
 */
function readRows(lines: string[], delimiter: string): (string[] | undefined)[] {
  const quoted = lines.filter((line) => line.includes('"'))
  const rows = quoted.length > 0 ? parseRows(quoted.join('\n'), delimiter) : []
  if (rows?.length !== quoted.length) return lines.map((line) => readRow(line, delimiter))
  let next = 0
  return lines.map((line) => (line.includes('"') ? rows[next++] : line.split(delimiter)))
}

function readRow(line: string, delimiter: string): string[] | undefined {
  return line.includes('"') ? parseRows(line, delimiter)?.[0] : line.split(delimiter)
}

function parseRows(text: string, delimiter: string): string[][] | undefined {
  try {
    return parseCsv(text, { delimiter, relax_column_count: true, record_delimiter: '\n' })
  } catch {
    return undefined
  }
}
