import type { Fact, LogLine } from '../line.ts'
import { forwardedFor, headerObjects } from './formats/aliases.ts'
import type { Fields } from './parser.ts'
import { readText } from './values.ts'

/** Caddy writes this instead of the value of a header with secrets. */
const REDACTED = 'REDACTED'

/** Headers that are properties of a line of their own. */
const OWN = new Set(['user-agent', 'referer', 'host'])

/** nginx has a variable for each request header (`$http_x_plan`), Traefik and W3C have fields: `request_X-Plan`, `cs(X-Plan)`. */
const HEADER = /^(?:http_([a-z]\w*)|request_([A-Z][\w-]*)|cs\(([\w-]+)\))$/
/** The headers with the address of the client also have fields of their names. */
const ADDRESS = /^(?:x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|fastly-client-ip)$/

function headerOf(field: string): string | undefined {
  if (forwardedFor.includes(field)) return 'x-forwarded-for'
  const [, nginx, traefik, w3c] = HEADER.exec(field) ?? []
  const name = (nginx ?? traefik ?? w3c ?? field).toLowerCase().replaceAll('_', '-')
  return HEADER.test(field) || ADDRESS.test(name) ? name : undefined
}

/**
 * The logs of CloudFront and Cloudflare have `X-Forwarded-For` as the client sent it. They add the address of the client behind it when they
 * pass the request on, so that the limiter gets another one.
 */
const isOfEdge = (fields: Fields) => 'x-edge-location' in fields || 'ClientRequestURI' in fields

/** Finds the request headers in the first lines of a log. */
export function findHeaders(samples: Fields[]) {
  const objects = headerObjects
    .map((name) => name.split('.'))
    .filter((keys) => samples.some((fields) => entries(at(fields, keys))))
    .slice(0, 1)
  const keys = [...new Set(samples.flatMap((fields) => Object.keys(fields)))]
  const variables = keys.flatMap((key) => {
    const name = headerOf(key)
    return name === undefined ? [] : [{ key, name }]
  })
  const ofEdge = samples.some(isOfEdge)
  const all = (fields: Fields): [name: string, value: unknown][] =>
    [
      ...objects.flatMap((keys) => entries(at(fields, keys)) ?? []),
      ...variables.map(({ key, name }): [string, unknown] => [name, fieldOf(fields, key)]),
    ].filter(([name]) => !ofEdge || name.toLowerCase() !== 'x-forwarded-for')
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

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** The headers of an object, or of a list with `name` and `value` in each item. */
function entries(value: unknown): [name: string, value: unknown][] | undefined {
  if (Array.isArray(value)) {
    return value.flatMap((one) => (isObject(one) ? [[String(one.name), one.value] as const] : []))
  }
  return isObject(value) ? Object.entries(value) : undefined
}

function at(fields: Fields, keys: string[]): unknown {
  let value: unknown = fields
  for (const key of keys) value = isObject(value) ? value[key] : undefined
  return value
}

/**
 * The value of a field. Those in the format of W3C have `+` (IIS) or percent-encoding (CloudFront) for a space. A referrer is a URL, which
 * contains both itself.
 */
export function fieldOf(fields: Fields, name: string): unknown {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (typeof value !== 'string' || !W3C.test(name)) return value
  if (!/%[\da-f]{2}/i.test(value)) return value.replaceAll('+', ' ')
  // Old logs of CloudFront are encoded twice.
  const once = value.includes('%2520') ? value.replaceAll('%25', '%') : value
  return once.replace(/(?:%[\da-f]{2})+/gi, (part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  })
}

const W3C = /^(?:cs\((?!referer\)).*\)|x-forwarded-for)$/i
