import type { Fact, LogLine } from '../../line.ts'
import { LogError } from '../log.ts'
import { type CreateParser, factsOf, type Property } from '../parser.ts'
import { Rejection } from '../rejection.ts'
import { combinedRemedy } from '../remedies.ts'
import { readHost, readRequest, unescapeField } from '../request.ts'
import { printable } from '../text.ts'
import { createStampReader, timeProblem } from '../time.ts'
import { readAddress, readSender, setProperty, withChain } from '../values.ts'
import { closingQuote, tokens } from './tokens.ts'

/** `1.2.3.4 - user [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1234`, in the Combined Log Format with referrer and user agent. */
const COMMON = /^\S+ \S.* \[\d[^\]]{18,35}\] "/
const VIRTUAL_HOST = /^(\S+) (\S+) /

/** The Combined and the Common Log Format, perhaps with a virtual host before it (Apache's `vcombined`) and further fields behind it. */
export const createCombined: CreateParser = (lines, { map: given, host }) => {
  const common = lines.filter((line) => COMMON.test(line))
  if (common.length === 0) return undefined
  const hasHost = isMostly(common, isAfterHost)
  const isCombined = isMostly(common, (line) => fieldsOf(line).length >= COMBINED_FIELDS)
  const name = isCombined ? 'Combined Log Format' : 'Common Log Format'
  const facts = new Set<Fact>(['query', 'status'])
  if (
    common.some(
      (line) => beginsWithChain(line) || readAddress(line.split(' ', 2)[hasHost ? 1 : 0]!),
    )
  ) {
    facts.add('ip')
  }
  if (isCombined) facts.add('header:user-agent').add('header:referer')
  if (hasHost || host) facts.add('host')
  const { map, chain } = withChain(given, (name) =>
    common.map((line) => fieldsOf(line)[fieldIndex(name)]),
  )
  const mapped = mappedFields(map, facts)
  const isChain = common.some(beginsWithChain)
  const hasForwarded = isMostly(common, hasForwardedFor)
  if (isChain || hasForwarded) facts.add('header:x-forwarded-for')
  const readStamp = createStampReader()
  const parse = (text: string) => {
    const line = parseLine(text, { hasHost, isChain, hasForwarded, otherwise: host, readStamp })
    if (mapped.length > 0 && !(line instanceof Rejection)) applyMap(line, mapped, text)
    return line
  }
  const fields = Math.max(...common.slice(0, 100).map((line) => fieldsOf(line).length))
  return {
    title: hasHost ? `${name} with a virtual host` : name,
    facts,
    remedyOf: combinedRemedy(FIRST_FIELD + fields, common.some(hasForwardedFor)),
    parse,
    chain: chain ?? (isChain ? 'the first field' : undefined),
    addressMayBe: facts.has('ip') ? undefined : addressIn(common[0]!),
  }
}

/** Servers behind a proxy may log `X-Forwarded-For` as the address: `203.0.113.9, 198.51.100.7 - - [`. */
const beginsWithChain = (line: string) => /^[\da-f.:]+,/i.test(line)

/** nginx's format `main` has the field behind the user agent. */
const hasForwardedFor = (line: string) =>
  readAddress(fieldsOf(line)[FIELDS.indexOf('forwardedFor')] ?? '') !== undefined

/** Where a line has an address that is not where the format has it. */
function addressIn(line: string): string | undefined {
  const words = line.slice(0, line.search(STAMP)).split(' ')
  const at = words.findIndex((word) => readAddress(word))
  const field = fieldsOf(line).findIndex((text) => readAddress(text))
  if (at < 0 && field < 0) return undefined
  if (at < 0) return `in field${field + FIRST_FIELD}: --map ip=field${field + FIRST_FIELD}`
  const pattern = [...words.slice(0, at).map(() => '$_'), '$remote_addr', '$_'].join(' ')
  return `${printable(words[at]!)} in the line: --pattern '${pattern} [$time_local] "$request" $status $_ "$http_referer" "$http_user_agent"'`
}

const isMostly = (lines: string[], test: (line: string) => boolean) =>
  lines.filter(test).length * 2 > lines.length

/** Without a virtual host, the second field is the name of a user or `-`. */
function isAfterHost(line: string): boolean {
  const [, first = '', second = ''] = VIRTUAL_HOST.exec(line) ?? []
  if (beginsWithChain(line)) return false
  return readAddress(second) !== undefined || (second !== '-' && /^[\w.-]+:\d+$/.test(first))
}

const NO_TIME = new Rejection('there is no time in brackets, as in [17/May/2015:10:05:03 +0000]')
const NO_REQUEST_FIELD = new Rejection('there is no request in quotes after the time')
const UNCLOSED = new Rejection('a field in quotes is not closed')
const NO_STATUS = new Rejection('there is no status after the request')
const JSON_LINE = new Rejection('the line is JSON')

function parseLine(
  text: string,
  {
    hasHost,
    isChain,
    hasForwarded,
    otherwise,
    readStamp,
  }: {
    hasHost: boolean
    isChain: boolean
    hasForwarded: boolean
    otherwise: string | undefined
    readStamp: ReturnType<typeof createStampReader>
  },
): LogLine | Rejection {
  const from = hasHost ? text.indexOf(' ') + 1 : 0
  let addressEnd = text.indexOf(' ', from)
  while (text.charCodeAt(addressEnd - 1) === COMMA) addressEnd = text.indexOf(' ', addressEnd + 1)
  let stamp = addressEnd
  let stampEnd = -1
  let time = Number.NaN
  // The name of a user can contain spaces and brackets.
  while (Number.isNaN(time)) {
    stamp = text.indexOf(' [', stamp + 1)
    stampEnd = stamp < 0 ? -1 : text.indexOf(']', stamp)
    if (stampEnd < 0) return text.startsWith('{') ? JSON_LINE : NO_TIME
    time = readStamp(text, stamp + 2, stampEnd)
  }
  const problem = timeProblem(time)
  if (problem) return problem
  const requestStart = stampEnd + 3
  if (text.charCodeAt(requestStart - 1) !== QUOTE) return NO_REQUEST_FIELD
  const requestEnd = closingQuote(text, requestStart)
  if (requestEnd < 0) return UNCLOSED
  const status = statusAt(text, requestEnd + 2)
  if (status === undefined) return NO_STATUS
  const request = readRequest(text.slice(requestStart, requestEnd), true)
  if (request instanceof Rejection) return request
  const sender = readSender(text, from, addressEnd)
  // Without a referrer, the position after it is 0, where no field begins.
  const refererStart = text.indexOf(' "', requestEnd + 2) + 2
  const refererEnd = refererStart > 1 ? fieldEnd(text, refererStart) : -1
  const agentStart = text.startsWith(' "', refererEnd + 1) ? refererEnd + 3 : -1
  const agentEnd = agentStart < 0 ? -1 : fieldEnd(text, agentStart)
  const forwarded = isChain
    ? readField(text, from, addressEnd)
    : hasForwarded && text.startsWith(' "', agentEnd + 1)
      ? readField(text, agentEnd + 3, fieldEnd(text, agentEnd + 3))
      : undefined
  return {
    time,
    ip: sender?.ip,
    sender,
    method: request.method,
    target: request.target,
    host: (hasHost ? readHost(text.slice(0, from - 1)) : undefined) ?? request.host ?? otherwise,
    status: status || undefined,
    userAgent: agentStart < 0 ? undefined : readField(text, agentStart, agentEnd),
    referer: refererEnd < 0 ? undefined : readField(text, refererStart, refererEnd),
    country: undefined,
    asn: undefined,
    colo: undefined,
    headers: forwarded === undefined ? undefined : { 'x-forwarded-for': forwarded },
  }
}

/** The end of the referrer or the user agent. Servers and collectors cut long lines, often in the user agent. */
function fieldEnd(text: string, from: number): number {
  const end = closingQuote(text, from)
  return end < 0 ? text.length : end
}

function readField(text: string, from: number, end: number): string | undefined {
  if (end === from || (end === from + 1 && text.charCodeAt(from) === DASH)) return undefined
  return unescaped(text.slice(from, end))
}

const QUOTE = 34
const COMMA = 44
const ZERO = 48
const DASH = 45

/** Reads three digits. Returns 0 for the `-` of a connection that ended early, and `undefined` for anything else. */
function statusAt(text: string, at: number): number | undefined {
  if (text.charCodeAt(at) === DASH) return 0
  const a = text.charCodeAt(at) - ZERO
  const b = text.charCodeAt(at + 1) - ZERO
  const c = text.charCodeAt(at + 2) - ZERO
  return a >= 0 && a <= 9 && b >= 0 && b <= 9 && c >= 0 && c <= 9 ? a * 100 + b * 10 + c : undefined
}

const unescaped = (text: string) => (text.includes('\\') ? unescapeField(text) : text)

/** The names of the fields behind the time, for `--map`. nginx's format `main` has `forwardedFor`. Further ones are `field11` and so on. */
const FIELDS = ['time', 'request', 'status', 'bytes', 'referer', 'userAgent', 'forwardedFor']
const FIRST_FIELD = 4
const COMBINED_FIELDS = 6

function fieldIndex(name: string): number {
  const [, number] = /^field(\d{1,3})$/.exec(name) ?? []
  return number === undefined ? FIELDS.indexOf(name) : Number(number) - FIRST_FIELD
}

const FIXED: Property[] = ['time', 'method', 'target', 'query', 'status']

function mappedFields(map: ReadonlyMap<Property, string>, facts: Set<Fact>) {
  return [...map].map(([property, name]) => {
    const index = fieldIndex(name)
    const option = `--map ${property}=${name}`
    if (FIXED.includes(property)) {
      throw new LogError('map', `${option}: the Combined Log Format has a fixed place for it.`)
    }
    if (index < 0) {
      throw new LogError(
        'map',
        `${option}: the Combined Log Format has no field ${name}. The fields are ${FIELDS.join(', ')} (or field10), field11 and so on.`,
      )
    }
    for (const fact of factsOf(property)) facts.add(fact)
    return { property, index }
  })
}

function applyMap(line: LogLine, mapped: { property: Property; index: number }[], text: string) {
  const fields = fieldsOf(text)
  for (const { property, index } of mapped) {
    const value = fields[index]
    setProperty(line, property, value && unescaped(value))
  }
}

/** The fields that begin with the time. */
const fieldsOf = (line: string) => tokens(line.slice(line.search(STAMP) + 1)) ?? []

const STAMP = / \[\d[^\]]{18,35}\] "/
