import type { CreateParser, Fields } from '../parser.ts'
import { createRecordReader } from '../records.ts'
import { Rejection } from '../rejection.ts'
import {
  caddyRemedy,
  logpushRemedy,
  mapRemedy,
  nginxRemedy,
  type RemedyOf,
  traefikRemedy,
} from '../remedies.ts'

/** A kind of log in JSON: its title, and the fields by which it is recognized. */
interface Kind {
  title: string
  remedyOf: RemedyOf
  has(fields: Fields): boolean
}

const kinds = {
  caddy: {
    title: 'Caddy JSON',
    remedyOf: caddyRemedy,
    has: ({ request, ts }) => typeof request === 'object' && request !== null && ts !== undefined,
  },
  logpush: {
    title: 'Cloudflare Logpush (http_requests)',
    remedyOf: logpushRemedy,
    has: (fields) => 'EdgeStartTimestamp' in fields || 'ClientRequestURI' in fields,
  },
  nginx: {
    title: 'JSON (nginx)',
    remedyOf: nginxRemedy,
    has: (fields) =>
      'http_user_agent' in fields ||
      'time_iso8601' in fields ||
      'request_uri' in fields ||
      'remote_addr' in fields,
  },
  traefik: {
    title: 'JSON (Traefik)',
    remedyOf: traefikRemedy,
    has: (fields) => 'RequestPath' in fields,
  },
} satisfies Record<string, Kind>

/** Creates parsers of lines that are JSON objects. Of a kind that is not named, any objects are accepted. */
const createJson =
  (only?: keyof typeof kinds): CreateParser =>
  (lines, options) => {
    const samples = lines.flatMap((line) => {
      const fields = parseObject(line)
      return fields instanceof Rejection ? [] : [fields]
    })
    const isSample = only ? kinds[only].has : () => true
    const fitting = samples.filter(isSample)
    if (fitting.length === 0) return undefined
    const { title, remedyOf } = only
      ? kinds[only]
      : (Object.values<Kind>(kinds).find(({ has }) => samples.some(has)) ?? {
          title: 'JSON',
          remedyOf: mapRemedy,
        })
    const { read, ...known } = createRecordReader(fitting, options)
    const parse = (line: string) => {
      const fields = parseObject(line)
      return fields instanceof Rejection ? fields : read(fields)
    }
    return { title, remedyOf, ...known, parse }
  }

export const createAnyJson = createJson()
export const createCaddy = createJson('caddy')
export const createLogpush = createJson('logpush')

const NOT_JSON = new Rejection('the line is not JSON')
const NO_OBJECT = new Rejection('the line is not an object of JSON')

function parseObject(line: string): Fields | Rejection {
  const value = parseJson(line)
  if (value === undefined) return NOT_JSON
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : NO_OBJECT
}

/** nginx writes `\x22` unless its format has `escape=json`. JSON has no such escape. */
function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    if (!line.includes('\\x')) return undefined
  }
  try {
    return JSON.parse(line.replace(/\\x([\da-f]{2})/gi, '\\u00$1'))
  } catch {
    return undefined
  }
}
