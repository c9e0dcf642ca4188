import fc from 'fast-check'
import type { LogLine } from '../../cli/replay/line.ts'

/** Writers of lines, as the servers write them, and lines that they can write. They share no code with the reader. */

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const two = (number: number) => String(number).padStart(2, '0')

/** A stamp of the Common Log Format, in a time zone. */
export function clfStamp(time: number, minutesEast = 0): string {
  const at = new Date(time + minutesEast * 60_000)
  const zone = `${minutesEast < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutesEast) / 60))}${two(Math.abs(minutesEast) % 60)}`
  const day = `${two(at.getUTCDate())}/${MONTHS[at.getUTCMonth()]}/${at.getUTCFullYear()}`
  return `${day}:${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} ${zone}`
}

const hex = (byte: number) => byte.toString(16).padStart(2, '0')

/** Apache escapes quotes and backslashes by a backslash, and other bytes as `\x0b`. */
const apache = (text = '-') =>
  [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      if (character === '"' || character === '\\') return `\\${character}`
      if (character === '\n') return '\\n'
      if (character === '\t') return '\\t'
      return byte < 32 || byte > 126 ? `\\x${hex(byte)}` : character
    })
    .join('')

/** nginx escapes quotes, backslashes and bytes that are not visible as `\x0B`. */
const nginx = (text = '-') =>
  [...Buffer.from(text)]
    .map((byte) =>
      byte < 32 || byte > 126 || byte === 34 || byte === 92
        ? `\\x${hex(byte).toUpperCase()}`
        : String.fromCharCode(byte),
    )
    .join('')

const combined = (line: LogLine, escaped: (text?: string) => string, zone = 0) =>
  `${line.ip} - - [${clfStamp(line.time, zone)}] "${line.method} ${line.target} HTTP/1.1" ${line.status} 512 "${escaped(line.referer)}" "${escaped(line.userAgent)}"`

const quoted = (value: unknown) => `"${String(value ?? '').replaceAll('"', '""')}"`
const ipPort = (ip = '') => (ip.includes(':') ? `[${ip}]:4711` : `${ip}:4711`)

export interface Writer {
  write(line: LogLine): string
  /** Properties that the format does not have, or writes as whole seconds. */
  without?: (keyof LogLine)[]
  wholeSeconds?: boolean
  /** Written before the first line. */
  header?: string
}

const COMMON_WITHOUT: (keyof LogLine)[] = ['host', 'country', 'asn', 'colo']

/** A writer of each format, by the title that the reader gives it. */
export const writers: Record<string, Writer> = {
  'Combined Log Format': {
    write: (line) => combined(line, apache, 330),
    without: COMMON_WITHOUT,
    wholeSeconds: true,
  },
  'Combined Log Format with a virtual host': {
    write: (line) => `${line.host}:443 ${combined(line, nginx, -180)} "10.0.0.1"`,
    without: ['country', 'asn', 'colo'],
    wholeSeconds: true,
  },
  'Common Log Format': {
    write: (line) => combined(line, nginx).split(' ').slice(0, 10).join(' '),
    without: [...COMMON_WITHOUT, 'userAgent', 'referer'],
    wholeSeconds: true,
  },
  'JSON (nginx)': {
    write: (line) =>
      JSON.stringify({
        time_iso8601: new Date(line.time).toISOString().replace('Z', '+00:00'),
        remote_addr: line.ip,
        http_host: line.host,
        request: `${line.method} ${line.target} HTTP/2.0`,
        status: String(line.status),
        http_user_agent: line.userAgent ?? '',
        http_referer: line.referer ?? '',
      }),
    without: ['country', 'asn', 'colo'],
  },
  'Caddy JSON': {
    write: (line) =>
      JSON.stringify({
        level: 'info',
        ts: line.time / 1000,
        logger: 'http.log.access',
        request: {
          remote_ip: '10.0.0.1',
          client_ip: line.ip,
          proto: 'HTTP/2.0',
          method: line.method,
          host: line.host,
          uri: line.target,
          headers: {
            ...(line.userAgent && { 'User-Agent': [line.userAgent] }),
            ...(line.referer && { Referer: [line.referer] }),
          },
        },
        status: line.status,
      }),
    without: ['country', 'asn', 'colo'],
  },
  'Cloudflare Logpush (http_requests)': {
    write: (line) =>
      JSON.stringify({
        ClientIP: line.ip,
        ClientRequestHost: line.host,
        ClientRequestMethod: line.method,
        ClientRequestURI: line.target,
        ClientRequestUserAgent: line.userAgent ?? '',
        ClientRequestReferer: line.referer ?? '',
        ClientCountry: line.country?.toLowerCase(),
        ClientASN: Number(line.asn),
        EdgeColoCode: line.colo,
        EdgeResponseStatus: line.status,
        EdgeStartTimestamp: line.time * 1e6,
      }),
  },
  'AWS Application Load Balancer': {
    write: (line) => {
      const created = new Date(line.time).toISOString().replace('Z', '000Z')
      return `h2 ${new Date(line.time + 1500).toISOString()} app/name/1 ${ipPort(line.ip)} 10.0.0.1:80 0.000 0.001 0.000 ${line.status} 200 34 366 "${line.method} https://${line.host}:443${line.target} HTTP/2.0" "${nginx(line.userAgent)}" - - arn:aws "Root=1" "${line.host}" "-" 0 ${created} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`
    },
    without: ['referer', 'country', 'asn', 'colo'],
  },
  CSV: {
    header: 'timestamp,client_ip,method,url,host,status,user_agent,referer,country,asn,colo',
    write: ({ time, ip, method, target, host, status, userAgent, referer, country, asn, colo }) =>
      [time, ip, method, target, host, status, userAgent, referer, country, asn, colo]
        .map(quoted)
        .join(','),
  },
}

/** The line as a format can write it. */
export function writable(line: LogLine, { without = [], wholeSeconds }: Writer): LogLine {
  const time = wholeSeconds ? Math.floor(line.time / 1000) * 1000 : line.time
  return { ...line, time, ...Object.fromEntries(without.map((name) => [name, undefined])) }
}

/** Characters that formats escape are frequent. */
const field = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.constantFrom('"', '\\', '\t', 'é', '\\x22', '[', ' '),
    ),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(''))
  // CSV as a line: a line feed would end it. `-` is an absent value.
  .filter((text) => text !== '' && text !== '-' && !/[\r\n]/.test(text) && text.isWellFormed())
const optional = <Value>(values: fc.Arbitrary<Value>) => fc.option(values, { nil: undefined })
const visible = fc.stringMatching(/^[\w!$%&'()*+,\-./:;=@~]{0,30}$/)

export const logLines: fc.Arbitrary<LogLine> = fc.record({
  time: fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2100, 0) - 2000 }),
  ip: fc.oneof(
    fc.ipV4(),
    fc.ipV6().filter((text) => !text.includes('.')),
  ),
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND'),
  target: fc
    .tuple(visible, optional(visible))
    .map(([path, query]) => `/${path}${query === undefined ? '' : `?${query}`}`),
  host: fc.constantFrom('example.com', 'api.example.com', 'xn--bcher-kva.example'),
  status: fc.constantFrom(200, 304, 404, 429, 503),
  userAgent: optional(field),
  referer: optional(field),
  country: fc.constantFrom('DE', 'US'),
  asn: fc.constantFrom('13335', '64512'),
  colo: fc.constantFrom('FRA', 'SJC'),
  headers: fc.constant(undefined),
})
