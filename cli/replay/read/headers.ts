import type { Fact, LogLine } from '../line.ts'
import { headerObjects } from './formats/aliases.ts'
import type { Fields } from './parser.ts'
import { readText } from './values.ts'

/** Caddy writes this instead of the value of a header with secrets. */
const REDACTED = 'REDACTED'

/** Headers that are properties of a line of their own. */
const OWN = new Set(['user-agent', 'referer', 'host'])

/** nginx has a variable for each request header: `$http_x_plan`. */
const NGINX = /^http_[a-z]\w*$/

/** Finds the request headers in the first lines of a log. */
export function findHeaders(samples: Fields[]) {
  const objects = headerObjects
    .map((name) => name.split('.'))
    .filter((keys) => samples.some((fields) => isObject(at(fields, keys))))
    .slice(0, 1)
  const variables = [...new Set(samples.flatMap((fields) => Object.keys(fields)))].filter((key) =>
    NGINX.test(key),
  )
  const all = (fields: Fields): [name: string, value: unknown][] => [
    ...objects.flatMap((keys) => Object.entries(at(fields, keys) ?? {})),
    ...variables.map((key): [string, unknown] => [
      key.slice('http_'.length).replaceAll('_', '-'),
      fields[key],
    ]),
  ]
  const hasAll = objects[0]?.[0] === 'request'
  const facts: Set<Fact> = hasAll ? new AllHeaders() : new Set()
  for (const fields of samples) {
    for (const [name, value] of all(fields)) {
      if (readText(value) !== REDACTED && name.toLowerCase() !== 'host')
        facts.add(`header:${name.toLowerCase()}`)
    }
  }

  const read = (fields: Fields, line: LogLine) => {
    if (objects.length === 0 && variables.length === 0) return
    for (const [key, value] of all(fields)) {
      const [name, text] = [key.toLowerCase(), readText(value)]
      if (text === undefined || text === REDACTED) continue
      if (name === 'user-agent') line.userAgent = text
      else if (name === 'referer') line.referer = text
      else if (!OWN.has(name)) {
        line.headers ??= {}
        line.headers[name] = text
      }
    }
  }
  return { facts, read }
}

/** Caddy writes all headers, so that a header which the first lines do not have is known to be absent. */
class AllHeaders extends Set<Fact> {
  override has(fact: Fact): boolean {
    return super.has(fact) || (fact.startsWith('header:') && !SECRET.has(fact))
  }
}

const SECRET = new Set(['header:authorization', 'header:cookie', 'header:proxy-authorization'])

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function at(fields: Fields, keys: string[]): Fields | undefined {
  let value: unknown = fields
  for (const key of keys) value = isObject(value) ? value[key] : undefined
  return isObject(value) ? value : undefined
}
