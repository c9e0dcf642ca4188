import type { Command } from './connection.ts'

/** An invalid request. The response is an HTTP error with this message. */
export class BadRequest extends Error {
  readonly status: number
  readonly headers: Record<string, string>

  constructor(message: string, status = 400, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** Parses the body of `POST /`: a JSON array. */
export function parseCommand(body: Buffer): Command {
  const text = body.toString()
  return toCommand(parseJson(text, 1), asWritten(text, 1))
}

/** Parses the body of `/pipeline` and `/multi-exec`: a JSON array of arrays. */
export function parseCommands(body: Buffer): Command[] {
  const text = body.toString()
  const rows = parseJson(text, 2)
  if (!Array.isArray(rows)) throw new BadRequest('ERR failed to parse pipeline: expected an array')
  if (rows.length === 0) throw new BadRequest('ERR empty pipeline')
  const exact = asWritten(text, 2)
  return rows.map((row, index) => toCommand(row, () => (exact() as unknown[])[index]))
}

const NESTED = 'ERR failed to parse command: expected strings and numbers as arguments'

/** @param exact returns the same row with each number as its source text */
function toCommand(row: unknown, exact: () => unknown): Command {
  if (!Array.isArray(row)) throw new BadRequest('ERR failed to parse command: expected an array')
  if (row.length === 0) throw new BadRequest('ERR empty command')
  if (row.every((argument) => typeof argument === 'string')) return row
  if (row.some((argument) => typeof argument === 'object' && argument !== null)) {
    throw new BadRequest(NESTED)
  }
  return row.map((argument, index) => {
    const inexact = typeof argument === 'number' && !Number.isSafeInteger(argument)
    return String(inexact ? (exact() as unknown[])[index] : argument)
  })
}

/** Up to this length any text is parsed in no time. V8 takes a second for 2 MB of open brackets, and for 10 MB of empty arrays. */
const LONG = 65_536

/** @param levels 1 for a command, 2 for an array of commands */
function parseJson(
  text: string,
  levels: number,
  reviver?: (key: string, value: unknown) => unknown,
): unknown {
  if (text.length > LONG) checkArrays(text, levels)
  try {
    return JSON.parse(text, reviver)
  } catch {
    throw new BadRequest('ERR failed to parse request: the body is not JSON')
  }
}

/** @throws {BadRequest} if the text has more levels, or an empty array in them */
function checkArrays(text: string, levels: number): void {
  let [depth, isQuoted, isEmpty] = [0, false, false]
  for (let index = 0; index < text.length; index++) {
    const char = text[index]!
    if (char === '\\') index++
    else if (char === '"') isQuoted = !isQuoted
    else if (isQuoted || char <= ' ') continue
    else if (char === '[' || char === '{') depth++
    else if (char === ']' || char === '}') depth--
    if (depth > levels) throw new BadRequest(NESTED)
    if (isEmpty && char === ']') throw new BadRequest('ERR empty command')
    isEmpty = char === '['
  }
}

/**
 * Parses the body with each number as its source text, since 2^63 and 0.10 change when they become a JavaScript number.
 * Parses once, at the first call: a pipeline may contain thousands of numbers.
 */
function asWritten(text: string, levels: number): () => unknown {
  // TypeScript does not know the reviver's third argument yet.
  const keep = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? (context?.source ?? `${value}`) : value
  let parsed: unknown
  return () => {
    parsed ??= parseJson(text, levels, keep as (key: string, value: unknown) => unknown)
    return parsed
  }
}

/** Parses a path such as `/set/key?EX=100`: the URL-encoded segments, then the body, then the query parameters. */
export function parsePath(path: string, query: string, body: Buffer): Command {
  const command: Command = path.slice(1).split('/').map(decode)
  if (body.length > 0) command.push(body)
  for (const [name, value] of queryOf(query)) {
    if (name.toString() === '_token') continue
    command.push(name)
    if (value.length > 0) command.push(value)
  }
  return command
}

/** The query parameter `_token`, an alternative to the Authorization header. */
export function tokenIn(query: string): string | undefined {
  for (const [name, value] of queryOf(query)) {
    if (name.toString() === '_token') return value.toString()
  }
}

function queryOf(query: string): [Buffer, Buffer][] {
  const parts = query.split('&').filter((part) => part !== '')
  return parts.map((part) => {
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(part.replaceAll('+', ' ')) ?? []
    return [decode(name), decode(value)]
  })
}

/** Percent-decodes to bytes, which need not be valid UTF-8. */
function decode(text: string): Buffer {
  if (!text.includes('%')) return Buffer.from(text)
  if (/%(?![0-9a-f]{2})/i.test(text)) throw new BadRequest('ERR invalid URL escape')
  const parts = text.split(/%([0-9a-f]{2})/i)
  return Buffer.concat(
    parts.map((part, index) => Buffer.from(part, index % 2 === 1 ? 'hex' : 'utf8')),
  )
}
