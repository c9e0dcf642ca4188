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
  /** What the reader calls the format, if it is not the name of the writer. */
  title?: string
  /** The line without what the format cannot write. */
  fit?: (line: LogLine) => LogLine
  /** Properties that the format does not have, or writes as whole seconds. */
  without?: (keyof LogLine)[]
  wholeSeconds?: boolean
  /** Written before the first line. */
  header?: string
}

const COMMON_WITHOUT: (keyof LogLine)[] = ['host', 'country', 'asn', 'colo']

/** Formats without escapes have neither quotes nor control characters in their texts. */
const plain = (text?: string) => text?.replace(/[^\w ./();:,=-]/g, '_')
const withPlainTexts = (line: LogLine) => ({
  ...line,
  userAgent: plain(line.userAgent),
  referer: plain(line.referer)?.replaceAll(' ', '_'),
})
const iso = (time: number) => new Date(time).toISOString()

/** W3C has the path and the query in two fields, and `-` for an empty one. */
const parts = ({ target }: LogLine) => {
  const [stem = '', query = ''] = target.split(/\?(.*)/)
  return { stem, query: query || '-' }
}
const forW3c = (line: LogLine) => {
  const { stem, query } = parts(line)
  return { ...withPlainTexts(line), target: query === '-' ? stem : `${stem}?${query}` }
}
const W3C = 'W3C Extended Log File Format'
const envoyEnd = ({ ip, userAgent = '-', host }: LogLine) =>
  `0 512 14 9 "203.0.113.99, ${ip}" "${userAgent}" "id-1" "${host}" "10.0.0.9:8080"`
const requestOf = ({ method, target }: LogLine) => `"${method} ${target} HTTP/1.1"`
const proxyManager = (line: LogLine, before: string, after: string) =>
  `[${clfStamp(line.time)}] ${before}${line.status} - ${line.method} https ${line.host} "${line.target}" [Client ${line.ip}] [Length 5] [Gzip -] ${after}"${nginx(line.userAgent)}" "${nginx(line.referer)}"`

/** A writer of each format, by the title that the reader gives it. */
export const writers: Record<string, Writer> = {
  'Combined Log Format': {
    write: (line) => combined(line, apache, 330),
    without: COMMON_WITHOUT,
    wholeSeconds: true,
  },
  'Combined Log Format with a virtual host': {
    write: (line) => `${line.host}:443 ${combined(line, nginx, -180)} "-"`,
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
  IIS: {
    title: W3C,
    header:
      '#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) cs-host sc-status time-taken',
    write: (line) => {
      const { stem, query } = parts(line)
      const [date, time] = iso(line.time).slice(0, 19).split('T')
      const agent = line.userAgent?.replaceAll(' ', '+') ?? '-'
      return `${date} ${time} 10.0.0.4 ${line.method} ${stem} ${query} 443 - ${line.ip} ${agent} ${line.referer ?? '-'} ${line.host} ${line.status} 15`
    },
    fit: forW3c,
    without: ['country', 'asn', 'colo'],
    wholeSeconds: true,
  },
  'IIS in another order, with the date above': {
    title: W3C,
    header:
      '#Version: 1.0\n#Date: 2026-11-20 00:00:00\n#Fields: time c-ip cs(Host) sc-status cs-uri-query cs-uri-stem cs-method',
    write: (line) => {
      const { stem, query } = parts(line)
      return `${iso(line.time).slice(11, 19)} ${line.ip} ${line.host} ${line.status} ${query} ${stem} ${line.method}`
    },
    fit: (line) => ({ ...forW3c(line), time: Date.UTC(2026, 10, 20) + (line.time % 86_400_000) }),
    without: ['userAgent', 'referer', 'country', 'asn', 'colo'],
    wholeSeconds: true,
  },
  CloudFront: {
    title: W3C,
    header:
      '#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query x-host-header time-taken x-forwarded-for c-country',
    write: (line) => {
      const { stem, query } = parts(line)
      const [date, time] = iso(line.time).slice(0, 19).split('T')
      const agent = line.userAgent === undefined ? '-' : encodeURIComponent(line.userAgent)
      return [
        ...[date, time, 'FRA56-P4', 512, line.ip, line.method, 'd111.cloudfront.net', stem],
        ...[line.status, line.referer ?? '-', agent, query, line.host, 0.002, '203.0.113.99'],
        line.country,
      ].join('\t')
    },
    fit: (line) => ({ ...forW3c(line), userAgent: line.userAgent }),
    without: ['asn', 'colo'],
    wholeSeconds: true,
  },
  HAProxy: {
    write: (line) =>
      `${line.ip}:40001 [${clfStamp(line.time).slice(0, 20)}.${String(line.time % 1000).padStart(3, '0')}] web~ app/s1 0/0/1/6/7 ${line.status} 649 - - ---- 3/3/2/1/0 0/0 {curl/8.5 |} ${requestOf(line)}`,
    without: ['host', 'userAgent', 'referer', 'country', 'asn', 'colo'],
  },
  Envoy: {
    write: (line) => `[${iso(line.time)}] ${requestOf(line)} ${line.status} - ${envoyEnd(line)}`,
    fit: withPlainTexts,
    without: ['referer', 'country', 'asn', 'colo'],
  },
  Istio: {
    write: (line) =>
      `[${iso(line.time)}] ${requestOf(line)} ${line.status} - via_upstream - "-" ${envoyEnd(line)} inbound|8080|| 127.0.0.6:4 10.0.0.9:8080 ${ipPort(line.ip)} - default`,
    fit: withPlainTexts,
    without: ['referer', 'country', 'asn', 'colo'],
  },
  'Nginx Proxy Manager': {
    write: (line) => proxyManager(line, '- 200 ', '[Sent-to 10.0.0.2] '),
    without: ['country', 'asn', 'colo'],
    wholeSeconds: true,
  },
  'Nginx Proxy Manager (standard)': {
    write: (line) => proxyManager(line, '', ''),
    without: ['country', 'asn', 'colo'],
    wholeSeconds: true,
  },
  'Amazon S3': {
    write: (line) =>
      `79a5 bucket [${clfStamp(line.time)}] ${line.ip} - 3E57 REST.GET.OBJECT key ${requestOf(line)} ${line.status} - 113 - 7 - "${nginx(line.referer)}" "${nginx(line.userAgent)}" - Zxz= SigV4`,
    without: COMMON_WITHOUT,
    wholeSeconds: true,
  },
  'AWS Classic Load Balancer': {
    write: (line) =>
      `${iso(line.time)} my-elb ${line.ip}:2817 10.0.0.1:80 0.000073 0.001048 0.000057 ${line.status} 200 0 29 "${line.method} https://${line.host}:443${line.target} HTTP/1.1" "${nginx(line.userAgent)}" ECDHE TLSv1.2`,
    without: ['referer', 'country', 'asn', 'colo'],
  },
  Traefik: {
    title: 'Combined Log Format',
    write: (line) => `${combined(line, nginx)} 7 "web@docker" "http://10.0.0.2:80" 3ms`,
    without: COMMON_WITHOUT,
    wholeSeconds: true,
  },
  ...Object.fromEntries(
    (
      [
        ['\t', 'TSV'],
        [';', 'CSV'],
      ] as const
    ).map(([delimiter, title]): [string, Writer] => [
      `values with ${title === 'TSV' ? 'tabs' : 'semicolons'} between them, and a date and a time`,
      {
        title,
        header: ['date', 'time', 'client_ip', 'method', 'url', 'host', 'status'].join(delimiter),
        write: ({ time, ip, method, target, host, status }) =>
          [iso(time).slice(0, 10), iso(time).slice(11, 23), ip, method, target, host, status]
            .map((value) => (delimiter === ';' ? quoted(value) : value))
            .join(delimiter),
        without: ['userAgent', 'referer', 'country', 'asn', 'colo'],
      },
    ]),
  ),
  CSV: {
    header: 'timestamp,client_ip,method,url,host,status,user_agent,referer,country,asn,colo',
    write: ({ time, ip, method, target, host, status, userAgent, referer, country, asn, colo }) =>
      [time, ip, method, target, host, status, userAgent, referer, country, asn, colo]
        .map(quoted)
        .join(','),
  },
}

/** The line as a format can write it. */
export function writable(
  request: LogLine,
  { without = [], wholeSeconds, fit = (line) => line }: Writer,
): LogLine {
  const line = fit(request)
  const time = wholeSeconds ? Math.floor(line.time / 1000) * 1000 : line.time
  return { ...line, time, ...Object.fromEntries(without.map((name) => [name, undefined])) }
}

/** What collectors write around a line. */
export const wrappings: Record<string, (line: string) => string> = {
  'syslog (RFC 3164)': (line) => `Nov  8 19:02:49 lb1 haproxy[812]: ${line}`,
  'syslog (RFC 3164) with a priority and no host': (line) => `<190>Nov 20 10:00:00 nginx: ${line}`,
  'syslog with ISO 8601': (line) => `2026-11-20T10:00:00.123456+00:00 192.0.2.9 nginx[12]: ${line}`,
  'syslog (RFC 5424)': (line) => `<190>1 2026-11-20T10:00:00.1Z web1 nginx 12 - - ${line}`,
  'syslog (RFC 5424) with data': (line) =>
    `<190>1 2026-11-20T10:00:00Z web1 nginx - ID47 [a@1 b="x\\"] y"][c] \uFEFF${line}`,
  'journald with microseconds': (line) => `Nov 20 10:00:00.123456 web1 nginx[12]: ${line}`,
  'journald as JSON': (line) => JSON.stringify({ PRIORITY: '6', MESSAGE: line }),
  'docker compose': (line) => `web-1  | ${line}`,
  'docker compose in colour': (line) => `\x1b[36mweb-1  |\x1b[0m ${line}`,
  'kubectl --prefix': (line) => `[pod/web-7d4c9-abc/nginx] ${line}`,
  'docker logs -t': (line) => `2026-11-20T10:00:00.123456789Z ${line}`,
  'a json-file of docker': (line) =>
    JSON.stringify({ log: `${line}\n`, stream: 'stdout', time: '2026-11-20T10:00:00.1Z' }),
  CRI: (line) => `2026-11-20T10:00:00.123456789+01:00 stdout F ${line}`,
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
