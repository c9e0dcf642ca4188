import type { LogLine } from '../line.ts'
import { aliases, forwardedFor, type Role, targetsWithQuery } from './formats/aliases.ts'
import { fieldOf, findHeaders } from './headers.ts'
import { LogError } from './log.ts'
import {
  type Fields,
  factsOf,
  type Parser,
  type ParserOptions,
  type Property,
  properties,
} from './parser.ts'
import { Rejection } from './rejection.ts'
import { readMethodAndTarget, readRequest } from './request.ts'
import { printable } from './text.ts'
import { readTime, timeProblem } from './time.ts'
import { readAddress, readStatus, readText, setProperty, withChain } from './values.ts'

/** Reads lines with named fields. */
export interface RecordReader extends Pick<Parser, 'facts' | 'chain' | 'addressMayBe'> {
  read(fields: Fields): LogLine | Rejection
}

const WITHOUT_REQUEST = new Rejection('the line is not about a request', 'without-request')
const NO_TIME = new Rejection('there is no time')
const SET_BY_REQUEST: Property[] = ['time', 'request', 'method', 'target', 'query']

/**
 * Finds the fields of requests in the first lines of a log.
 * @param byName true if all lines have the same fields, whose names are enough
 * @throws LogError if a field is missing
 */
export function createRecordReader(
  samples: Fields[],
  { map: given, host: otherwise }: ParserOptions,
  { byName = false } = {},
): RecordReader {
  const { map, chain } = withChain(given, (name) =>
    pathsOf(samples, name).flatMap((path) => samples.map(getter(path))),
  )
  const paths = findPaths(samples, map, byName)
  const [time, method, target] = [paths.get('time'), paths.get('method'), paths.get('target')]
  const request = usesRequestLine(map, paths) ? paths.get('request') : undefined
  const fail = (property: Needed) => missing(property, samples, byName)
  if (!time) throw fail('time')
  if (!request && !target) throw fail('target')
  if (!request && !method) throw fail('method')
  const query = paths.get('query')
  const simple = [...paths].flatMap(([role, path]) =>
    SET_BY_REQUEST.includes(role) ? [] : [{ property: role, get: getter(path) }],
  )
  const headers = findHeaders(samples)
  const get = {
    time: getter(time),
    request: request && getter(request),
    method: method && getter(method),
    target: target && getter(target),
    query: query && getter(query),
  }

  const readParts = (fields: Fields) => {
    if (get.request) {
      const text = get.request(fields)
      return typeof text === 'string' ? readRequest(text, false) : WITHOUT_REQUEST
    }
    const [name, path] = [get.method!(fields), get.target!(fields)]
    if (typeof name !== 'string' || typeof path !== 'string') return WITHOUT_REQUEST
    const extra = path.includes('?') ? undefined : readText(get.query?.(fields))
    return readMethodAndTarget(name, extra ? `${path}?${extra.replace(/^\?/, '')}` : path)
  }

  const read = (fields: Fields) => {
    const stamp = get.time(fields)
    if (stamp === undefined) return NO_TIME
    const milliseconds = readTime(stamp)
    const problem = timeProblem(milliseconds)
    if (problem) return problem
    const parts = readParts(fields)
    if (parts instanceof Rejection) return parts
    const line: LogLine = {
      time: milliseconds,
      ip: undefined,
      sender: undefined,
      method: parts.method,
      target: parts.target,
      host: parts.host ?? otherwise,
      status: undefined,
      userAgent: undefined,
      referer: undefined,
      country: undefined,
      asn: undefined,
      colo: undefined,
      headers: undefined,
    }
    headers.read(fields, line)
    for (const { property, get } of simple) setProperty(line, property, get(fields))
    return line
  }

  const facts = headers.facts
  for (const { property } of simple) for (const fact of factsOf(property)) facts.add(fact)
  if (otherwise) facts.add('host')
  const hasQuery = query ?? (request || targetsWithQuery.includes(target!.name) || undefined)
  if (hasQuery || samples.some((one) => String(getter(target!)(one)).includes('?'))) {
    facts.add('query')
  }
  const ip = paths.get('ip')?.name
  return {
    facts,
    read,
    chain: chain ?? forwardedFor.find((name) => name === ip),
    addressMayBe: ip === undefined ? addressIn(samples) : undefined,
  }
}

/** The first field that holds an address in most lines. */
function addressIn(samples: Fields[]): string | undefined {
  const names = [...new Set(samples.flatMap((fields) => leavesOf(fields)))]
  const path = mostOften(
    samples,
    names.flatMap((name) => pathsOf(samples, name)),
    fits.ip,
  )
  return path && `in the field ${printable(path.name)}: --map ip=${printable(path.name)}`
}

const leavesOf = (fields: Fields, before = ''): string[] =>
  Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? leavesOf(value as Fields, `${before}${name}.`)
      : [`${before}${name}`],
  )

/** A request line has the query, which some fields of paths do not have. */
function usesRequestLine(map: ParserOptions['map'], paths: Map<Property, Path>): boolean {
  const target = paths.get('target')
  if (map.has('request')) return true
  if (map.has('target') && paths.has('method')) return false
  return !(paths.has('method') && target && targetsWithQuery.includes(target.name))
}

/** What every log needs, with the fields of W3C. */
const needed = { time: 'date and time', method: 'cs-method', target: 'cs-uri-stem' }
type Needed = keyof typeof needed

function missing(property: Needed, samples: Fields[], isW3c: boolean): LogError {
  const names = [...new Set(samples.flatMap((fields) => Object.keys(fields)))].slice(0, 30)
  return new LogError(
    'map',
    `${isW3c ? `#Fields lacks ${needed[property]}: add what is missing to the fields that the server logs.` : `No field holds the ${property} of the requests.`} Name it: --map ${property}=FIELD${property === 'time' ? '' : ', or --map request=FIELD for a whole request line'}. The fields are ${names.map(printable).join(', ')}.`,
  )
}

/** The place of a field: its name, and the keys that lead to it. */
interface Path {
  name: string
  keys: string[]
  /** True if the keys are those of several fields, whose values belong together. */
  isJoined?: boolean
}

/** W3C has the time in two fields, and so has what others make of it. */
const DATE_AND_TIME: Path = { name: 'date and time', keys: ['date', 'time'], isJoined: true }

function findPaths(
  samples: Fields[],
  map: ParserOptions['map'],
  byName: boolean,
): Map<Property, Path> {
  const paths = new Map<Property, Path>()
  for (const role of properties) {
    if (map.has(role)) continue
    const path = byName
      ? aliases[role].flatMap((name) => pathsOf(samples, name))[0]
      : bestPath(samples, role, paths.get('ip')?.name)
    if (path) paths.set(role, path)
  }
  const getBoth = getter(DATE_AND_TIME)
  const isJoined = samples.some((fields) =>
    byName ? 'date' in fields && 'time' in fields : !Number.isNaN(readTime(getBoth(fields))),
  )
  if (isJoined) paths.set('time', DATE_AND_TIME)
  else if (byName && DATE_AND_TIME.keys.includes(paths.get('time')?.name ?? '')) {
    paths.delete('time')
  }
  for (const [property, name] of map) {
    const candidates = pathsOf(samples, name)
    const path = mostOften(samples, candidates, (value) => value !== undefined)
    if (!path) throw notFound(property, name)
    paths.set(property, path)
  }
  return paths
}

const notFound = (property: Property, name: string) =>
  new LogError('map', `--map ${property}=${name}: the first lines have no field ${name}.`)

/** The alias that most lines have with a fitting value. */
function bestPath(samples: Fields[], role: Role, ip: string | undefined): Path | undefined {
  const names = aliases[role].filter((name) => role !== 'host' || name !== ip)
  const candidates = names.flatMap((name) => pathsOf(samples, name))
  return (
    mostOften(samples, candidates, fits[role]) ??
    (role === 'time'
      ? mostOften(samples, candidates, (value) => !Number.isNaN(readTime(value)))
      : undefined)
  )
}

function mostOften(samples: Fields[], paths: Path[], test: (value: unknown) => boolean) {
  let best: { path?: Path; count: number } = { count: 0 }
  for (const path of paths) {
    const count = samples.filter((fields) => test(getter(path)(fields))).length
    if (count > best.count) best = { path, count }
  }
  return best.path
}

/** A name with dots can be one key, or keys of nested objects. */
const pathsOf = (samples: Fields[], name: string): Path[] =>
  [[name], name.split('.')]
    .map((keys) => ({ name, keys }))
    .filter((path) => samples.some((fields) => getter(path)(fields) !== undefined))
    .slice(0, 1)

function getter({ keys, isJoined }: Path): (fields: Fields) => unknown {
  const [first = '', ...others] = keys
  if (isJoined) return (fields) => keys.map((key) => ownValue(fields, key)).join(' ')
  if (others.length === 0) return (fields) => fieldOf(fields, first)
  return (fields) => keys.reduce<unknown>(ownValue, fields)
}

const ownValue = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Fields)[key]
    : undefined

const isText = (value: unknown) => readText(value) !== undefined
const matches = (pattern: RegExp) => (value: unknown) =>
  typeof value === 'string' && pattern.test(value)

const fits: Record<Role, (value: unknown) => boolean> = {
  time: (value) => timeProblem(readTime(value)) === undefined,
  ip: (value) => readAddress(readText(value) ?? '') !== undefined,
  request: matches(/^\S+ \S+/),
  method: matches(/^[A-Z]+$/i),
  target: matches(/^(\/|https?:\/\/)/i),
  query: matches(/./),
  host: matches(/^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i),
  status: (value) => readStatus(value) !== undefined,
  userAgent: isText,
  referer: isText,
  country: matches(/^[A-Z][A-Z\d]$/i),
  asn: (value) => /^\d+$/.test(readText(value) ?? ''),
  colo: matches(/^[A-Z]{3}$/i),
}
